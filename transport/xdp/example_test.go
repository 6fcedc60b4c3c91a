//go:build linux

package xdp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/xdp"
)

// Receive: poll, and wait where there is nothing. The rest of the interface's traffic goes on to the
// kernel.
func ExampleOpen() {
	link, err := xdp.Open("eth0", xdp.Config{})
	if err != nil {
		log.Fatal(err) // names what is missing: capabilities, or a free interface
	}
	defer link.Close()
	fmt.Println(link.Mode(), link.Fallback()) // such as: native zero-copy: not supported by this driver
	frames := make([]transport.Frame, 64)
	for {
		n, err := link.Poll(frames)
		if err != nil {
			log.Fatal(err)
		}
		for _, f := range frames[:n] { // payloads are views of the link's memory, valid until the next Poll
			fmt.Printf("%v > %v %v %d bytes\n", f.Src, f.Dst, f.OptionalTag, len(f.Payload))
		}
		if n == 0 {
			if err := link.Wait(context.Background()); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// Ask before opening: what would the link be, or why is there none?
func ExampleProbe() {
	best, err := xdp.Probe("eth0")
	if err != nil {
		log.Fatal(err)
	}
	if best == xdp.Generic {
		fmt.Println("the driver has no XDP of its own: package ring is as good")
	}
}
