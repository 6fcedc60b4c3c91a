package mcd_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// nodesOnAFabric opens n nodes on a fabric.
func nodesOnAFabric(n int) (nodes []*mcd.Endpoint, closeAll func() error) {
	nodes, closeAll, err := mcdtest.Start(n, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	return nodes, closeAll
}

// acquire acquires a port that is free.
func acquire(e *mcd.Endpoint, id mcd.PortID) *mcd.Port {
	p, err := e.OpenPort(id, mcd.PortOptions{})
	if err != nil {
		log.Fatal(err)
	}
	return p
}

func Example() {
	nodes, closeAll := nodesOnAFabric(2)
	defer closeAll()
	ctx := context.Background()
	from, to := acquire(nodes[0], 1), acquire(nodes[1], 7)

	if err := from.Send(ctx, to.Addr(), []byte("hello")); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, nodes[1].MaxPayload())
	n, sender, err := to.Recv(ctx, buf)
	fmt.Printf("%q from %v, %v\n", buf[:n], sender, err)
	// Output: "hello" from 0:1, <nil>
}

func ExamplePort_Multicast() {
	nodes, closeAll := nodesOnAFabric(3)
	defer closeAll()
	ctx := context.Background()
	const group mcd.GroupID = 5
	members := []*mcd.Port{acquire(nodes[1], 7), acquire(nodes[2], 7)}
	for _, p := range members {
		if err := p.Endpoint().Join(group); err != nil {
			log.Fatal(err)
		}
	}
	if err := acquire(nodes[0], 1).Multicast(ctx, group, 7, []byte("members only")); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, nodes[0].MaxPayload())
	for _, p := range members {
		n, from, _ := p.Recv(ctx, buf)
		fmt.Printf("%v received %q from %v\n", p.Addr(), buf[:n], from)
	}
	// Output:
	// 1:7 received "members only" from 0:1
	// 2:7 received "members only" from 0:1
}

// A Receive function runs in the node's progress, whether or not its program waits for anything.
func ExampleEndpoint_OpenPort() {
	nodes, closeAll := nodesOnAFabric(2)
	defer closeAll()
	ctx := context.Background()
	reply := acquire(nodes[1], 8)
	_, err := nodes[1].OpenPort(7, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		for _, m := range batch {
			_ = reply.TrySend(m.NIC, mcd.To(m.From), m.Payload) // a lost echo is the asker's to notice
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	ask := acquire(nodes[0], 1)
	if err := ask.Send(ctx, mcd.Addr{Node: 1, Port: 7}, []byte("anybody?")); err != nil {
		log.Fatal(err)
	}
	buf := make([]byte, nodes[0].MaxPayload())
	n, from, err := ask.Recv(ctx, buf)
	fmt.Printf("%q from %v, %v\n", buf[:n], from, err)
	// Output: "anybody?" from 1:8, <nil>
}

// Descriptors are posted in batches, and may be used again when they are done.
func ExamplePort_PostSend() {
	nodes, closeAll := nodesOnAFabric(2)
	defer closeAll()
	ctx := context.Background()
	p, to := acquire(nodes[0], 1), acquire(nodes[1], 7)
	a := &mcd.SendDesc{To: mcd.To(to.Addr()), Payload: []byte("first")}
	b := &mcd.SendDesc{To: mcd.To(to.Addr()), Payload: []byte("second")}
	if err := p.PostSend(a, b); err != nil {
		log.Fatal(err)
	}
	for _, d := range []*mcd.SendDesc{a, b} {
		if err := d.Wait(ctx); err != nil { // now its payload may be changed
			log.Fatal(err)
		}
	}
	buf := make([]byte, nodes[1].MaxPayload())
	for range 2 {
		n, _, _ := to.Recv(ctx, buf)
		fmt.Printf("%s\n", buf[:n])
	}
	// Output:
	// first
	// second
}

// A layer that keeps its messages, to send them again, leaves room before each for the headers.
func ExamplePort_TrySendInPlace() {
	nodes, closeAll := nodesOnAFabric(2)
	defer closeAll()
	p, to := acquire(nodes[0], 1), acquire(nodes[1], 7)
	headroom := nodes[0].Headroom()
	kept := [][]byte{
		append(make([]byte, headroom), "first"...),
		append(make([]byte, headroom), "second"...),
	}
	n, err := p.TrySendInPlace(0, mcd.To(to.Addr()), kept...) // a full link takes fewer: the others later
	fmt.Println(n, err)
	buf := make([]byte, nodes[1].MaxPayload())
	for range n {
		size, _, _ := to.Recv(context.Background(), buf)
		fmt.Printf("%s\n", buf[:size])
	}
	// Output:
	// 2 <nil>
	// first
	// second
}

// A buffer is posted before its message comes; the one copy of the message is made into it.
func ExamplePort_PostRecv() {
	nodes, closeAll := nodesOnAFabric(2)
	defer closeAll()
	ctx := context.Background()
	p := acquire(nodes[1], 7)
	d := &mcd.RecvDesc{Buf: make([]byte, 64)}
	if err := p.PostRecv(d); err != nil {
		log.Fatal(err)
	}
	if err := acquire(nodes[0], 1).Send(ctx, p.Addr(), []byte("hello")); err != nil {
		log.Fatal(err)
	}
	err := d.Wait(ctx)
	fmt.Printf("%q from %v, %v\n", d.Buf[:d.N], d.From, err)
	// Output: "hello" from 0:1, <nil>
}

// Checksums of long messages can be left to links that have their own.
func ExampleChecksum() {
	for _, covers := range []mcd.Checksum{mcd.ChecksumAuto, mcd.ChecksumHeader} {
		nodes, closeAll, err := mcdtest.Start(2, mcdtest.Config{Endpoint: mcd.Config{Checksum: covers}})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%v: messages by link 0 have checksums of their %v\n", covers, nodes[0].Checksum(0))
		_ = closeAll()
	}
	// Output:
	// auto: messages by link 0 have checksums of their payload
	// header: messages by link 0 have checksums of their header
}
