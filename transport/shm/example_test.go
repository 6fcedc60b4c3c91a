//go:build linux

package shm_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/shm"
)

// Two links of one segment meet, in one process or in two: nothing has to be set up before.
func ExampleOpen() {
	a, err := shm.Open("example", shm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := shm.Open("example", shm.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	hello := transport.Frame{Dst: b.MAC(), EtherType: transport.EtherTypeDefault, Payload: []byte("hello")}
	if _, err := a.Send([]transport.Frame{hello}); err != nil {
		log.Fatal(err)
	}
	if err := b.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	frames := make([]transport.Frame, 8)
	n, err := b.Poll(frames)
	if err != nil {
		log.Fatal(err)
	}
	for _, f := range frames[:n] {
		fmt.Printf("%s\n", f.Payload)
	}
	// Output: hello
}

// A job whose nodes are on several hosts: those of this host are reached through memory, the others
// by the NIC. What is above the link does not know.
func ExampleConfig_wire() {
	wire, err := ring.Open("eth0", ring.Config{})
	if err != nil {
		log.Fatal(err)
	}
	link, err := shm.Open("job7", shm.Config{Wire: wire})
	if err != nil {
		log.Fatal(err)
	}
	defer link.Close() // and the wire
	for _, s := range link.Stations() {
		fmt.Printf("%v, of process %d, is on this host\n", s.MAC, s.PID)
	}
}
