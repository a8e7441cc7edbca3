// Command courier is the floor of a message between two processes: every line
// of its standard input becomes a file in its peer's folder, and it rings the
// peer; rung itself, it prints what lies in its own folder. No protocol, no
// roster, no state.
//
//	courier OWN-FOLDER OWN-BELL PEER-FOLDER PEER-BELL
package main

import (
	"bufio"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"switchboard/internal/atomicfile"
	"switchboard/internal/bell"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 5 {
		log.Fatal("usage: courier OWN-FOLDER OWN-BELL PEER-FOLDER PEER-BELL")
	}
	own, ownBell, peer, peerBell := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	b, err := bell.Listen(ownBell)
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()
	// The peer may write only once we can hear it.
	fmt.Println("ready")
	go func() {
		for range b.C() {
			if err := fetch(own); err != nil {
				log.Fatal(err)
			}
		}
	}()
	in := bufio.NewReader(os.Stdin)
	for n := 0; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if err := atomicfile.Write(filepath.Join(peer, fmt.Sprintf("%08d.json", n)), line); err != nil {
			log.Fatal(err)
		}
		if err := bell.Ring(peerBell); err != nil {
			log.Fatal(err)
		}
	}
}

// fetch prints the files of a folder and removes them.
func fetch(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if atomicfile.IsTemp(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if _, err := os.Stdout.Write(data); err != nil {
			return err
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}
