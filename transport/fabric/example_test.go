package fabric_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

func ExampleLinks() {
	links, err := fabric.Links(2)
	if err != nil {
		panic(err)
	}
	a, b := links[0], links[1]
	_, err = a.Send([]transport.Frame{{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: []byte("hello")}})
	if err != nil {
		panic(err)
	}

	if err := b.Wait(context.Background()); err != nil {
		panic(err)
	}
	received := make([]transport.Frame, 8)
	n, err := b.Poll(received)
	for _, f := range received[:n] {
		fmt.Printf("%v says %q in %d bytes\n", f.Src, f.Payload[:5], len(f.Payload))
	}
	fmt.Println(n, err)
	// Output:
	// 02:00:00:00:00:01 says "hello" in 46 bytes
	// 1 <nil>
}

// A fat tree whose top switches carry one VID each: a frame's tag chooses its way.
func ExampleFabric_Connect() {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		panic(err)
	}
	leaf0, leaf1 := f.AddSwitch("leaf0"), f.AddSwitch("leaf1")
	for i := range 2 {
		top := f.AddSwitch(fmt.Sprintf("top%d", i))
		for _, leaf := range []*fabric.Switch{leaf0, leaf1} {
			if _, err := f.Connect(leaf, top, fabric.Trunk(transport.VID(100+i))); err != nil {
				panic(err)
			}
		}
	}
	a, err := f.Attach(leaf0, fabric.Station{})
	if err != nil {
		panic(err)
	}
	b, err := f.Attach(leaf1, fabric.Station{})
	if err != nil {
		panic(err)
	}
	by := transport.Tag{VID: 101, PCP: 3}
	if _, err := a.Send([]transport.Frame{{Dst: b.MAC(), OptionalTag: transport.Tagged(by)}}); err != nil {
		panic(err)
	}
	received := make([]transport.Frame, 1)
	n, _ := b.Poll(received)
	fmt.Println(n, received[0].Tag)
	// Output: 1 VID 101 PCP 3
}

func ExampleLoopError() {
	f, err := fabric.New(fabric.Config{})
	if err != nil {
		panic(err)
	}
	a, b, c := f.AddSwitch("a"), f.AddSwitch("b"), f.AddSwitch("c")
	for _, ends := range [][2]*fabric.Switch{{a, b}, {b, c}, {c, a}} {
		_, err = f.Connect(ends[0], ends[1], fabric.Port{})
	}
	var loop *fabric.LoopError
	if errors.As(err, &loop) {
		fmt.Println(loop)
	}
	// Output: loop: untagged frames would go round a - b - c - a (let one of these cables carry other VIDs: fabric.Trunk)
}
