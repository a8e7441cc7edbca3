package bell

import (
	"fmt"
	"strings"
)

// MaxPath is the number of bytes below which the path of a bell must stay. The
// kernel keeps the path of a socket in a fixed field of 108 bytes on Linux and
// 104 on macOS and BSD, its final NUL included; a longer one can't be bound.
// All systems get the same bound, a little below the smallest.
const MaxPath = 100

// checkName refuses a name that isn't that of a file in a folder.
func checkName(name string) error {
	if name == "" || name == "." || name == ".." || strings.ContainsAny(name, "/\\\x00") {
		return fmt.Errorf("name of a bell is not a file name: %q", name)
	}
	return nil
}
