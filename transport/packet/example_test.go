//go:build linux

package packet_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
)

// Ask a group, and print the answers of one second.
func ExampleOpen() {
	link, err := packet.Open("eth0", packet.Config{})
	if err != nil {
		log.Fatal(err) // names what is missing: the interface, or CAP_NET_RAW
	}
	defer link.Close()
	group := transport.MAC{0x03, 0, 0, 0, 0, 1}
	if err := link.Join(group); err != nil {
		log.Fatal(err)
	}
	ask := transport.Frame{Dst: group, EtherType: transport.EtherTypeDefault, Payload: []byte("who is there?")}
	if _, err := link.Send([]transport.Frame{ask}); err != nil {
		log.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	frames := make([]transport.Frame, 16)
	for link.Wait(ctx) == nil {
		n, err := link.Poll(frames)
		if err != nil {
			log.Fatal(err)
		}
		for _, f := range frames[:n] {
			fmt.Printf("%v: %q\n", f.Src, f.Payload)
		}
	}
}
