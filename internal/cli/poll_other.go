//go:build !unix

package cli

import "io"

func pollable(r io.Reader) io.Reader { return r }
