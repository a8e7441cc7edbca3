//go:build !unix

package dirstore

const noFollow = 0
