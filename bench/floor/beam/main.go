// Command beam is the floor of a beacon: it sends every line of its standard
// input to all who are connected to its socket, and sends them back what they
// say. No protocol, no state, no file.
//
//	beam SOCKET
package main

import (
	"bufio"
	"fmt"
	"log"
	"net"
	"os"
	"sync"
)

func main() {
	log.SetFlags(0)
	if len(os.Args) != 2 {
		log.Fatal("usage: beam SOCKET")
	}
	l, err := net.Listen("unix", os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	// Somebody may dial only once we can hear it.
	fmt.Println("ready")
	var mu sync.Mutex // guards conns
	conns := make(map[net.Conn]bool)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				log.Fatal(err)
			}
			mu.Lock()
			conns[conn] = true
			mu.Unlock()
			go func() {
				echo(conn)
				mu.Lock()
				delete(conns, conn)
				mu.Unlock()
			}()
		}
	}()
	in := bufio.NewReader(os.Stdin)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		mu.Lock()
		for conn := range conns {
			_, _ = conn.Write(line) // it left: its own goroutine sees that
		}
		mu.Unlock()
	}
}

func echo(conn net.Conn) {
	defer conn.Close()
	in := bufio.NewReader(conn)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		if _, err := conn.Write(line); err != nil {
			return
		}
	}
}
