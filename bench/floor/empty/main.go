// Command empty is the floor of every program: it does nothing. With an
// argument it does nothing until its standard input ends.
package main

import "os"

func main() {
	if len(os.Args) > 1 {
		_, _ = os.Stdin.Read(make([]byte, 1)) // returns at the end of the input
	}
}
