// Command first is the program of the README.
package main

import (
	"context"
	"fmt"
	"log"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

func main() {
	ctx := context.Background()
	links, err := fabric.Links(2) // or one ring.Open("eth0", ring.Config{}) on each of two machines
	check(err)
	table := []mcd.Node{{ID: 0, MACs: []transport.MAC{links[0].MAC()}}, {ID: 1, MACs: []transport.MAC{links[1].MAC()}}}
	a, err := mcd.Open(mcd.Config{Node: 0, Nodes: table}, links[0])
	check(err)
	b, err := mcd.Open(mcd.Config{Node: 1, Nodes: table}, links[1])
	check(err)
	from, err := a.OpenPort(7, mcd.PortOptions{})
	check(err)
	to, err := b.OpenPort(7, mcd.PortOptions{})
	check(err)
	check(from.Send(ctx, to.Addr(), []byte("hello")))
	buf := make([]byte, b.MaxPayload())
	n, sender, err := to.Recv(ctx, buf)
	check(err)
	fmt.Printf("%v received %q from %v\n", to.Addr(), buf[:n], sender)
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
