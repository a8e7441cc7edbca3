// Package extension holds the Pi extension inside the program, so that one
// file is all there is to carry around.
package extension

import (
	"embed"
	"io/fs"
)

// What only development needs (tsconfig.json) stays outside.
//
//go:embed *.ts package.json tools.json
var files embed.FS

// Files returns the extension as it is put into Pi's agent directory.
func Files() fs.FS { return files }
