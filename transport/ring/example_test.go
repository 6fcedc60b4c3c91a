//go:build linux

package ring_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/ring"
)

// Receive: poll, and wait where there is nothing. VID, PCP and DEI are the frame's; TPID tells
// 802.1Q from 802.1ad.
func ExampleOpen() {
	link, err := ring.Open("eth0", ring.Config{EtherType: transport.EtherTypeAny})
	if err != nil {
		log.Fatal(err) // names what is missing: the interface, or CAP_NET_RAW
	}
	defer link.Close()
	frames := make([]transport.Frame, 64)
	for {
		n, err := link.Poll(frames)
		if err != nil {
			log.Fatal(err)
		}
		for i, f := range frames[:n] { // payloads are views of the ring, valid until the next Poll
			if f.Tagged { // also with VID 0, a priority tag
				fmt.Printf("%v > %v %v (TPID %#x) %d bytes\n", f.Src, f.Dst, f.Tag, link.TPID(i), len(f.Payload))
			}
		}
		if n == 0 {
			if err := link.Wait(context.Background()); err != nil {
				log.Fatal(err)
			}
		}
	}
}

// Trains: frames of one length for one station pass the kernel as one packet, and arrive as frames.
func ExampleLink_Trains() {
	link, err := ring.Open("eth0", ring.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer link.Close()
	to := transport.MAC{0x02, 0, 0, 0, 0, 0x02}
	frames := make([]transport.Frame, 44)
	for i := range frames {
		frames[i] = transport.Frame{Dst: to, EtherType: transport.EtherTypeDefault, Payload: make([]byte, link.TrainMTU())}
	}
	for range 1000 {
		if _, err := link.Send(frames); err != nil {
			log.Fatal(err)
		}
	}
	sent, _ := link.Trains() // 0 if the station does not receive trains
	fmt.Println(sent, "trains")
}

// Stamps: when the driver has a frame that was sent, and had one that was received.
func ExampleLink_ReceivedStamp() {
	link, err := ring.Open("eth0", ring.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer link.Close()
	if err := link.StampFrames(true); err != nil {
		log.Fatal(err)
	}
	called := time.Now()
	ping := transport.Frame{Dst: transport.Broadcast, EtherType: transport.EtherTypeDefault, Payload: []byte("ping")}
	if _, err := link.Send([]transport.Frame{ping}); err != nil {
		log.Fatal(err)
	}
	sent := make([]transport.SentStamp, 8)
	for _, s := range sent[:link.SentStamps(sent)] {
		fmt.Printf("frame %d left %v after the call\n", s.Frame, s.Software.Sub(called))
	}
	if err := link.Wait(context.Background()); err != nil {
		log.Fatal(err)
	}
	frames := make([]transport.Frame, 64)
	n, err := link.Poll(frames)
	if err != nil {
		log.Fatal(err)
	}
	for i := range frames[:n] {
		fmt.Printf("%v after the driver had it\n", time.Since(link.ReceivedStamp(i).Software))
	}
}

// Transmit: a batch is one system call. The source address is the interface's where it is left out.
func ExampleLink_Send() {
	link, err := ring.Open("eth0", ring.Config{})
	if err != nil {
		log.Fatal(err)
	}
	defer link.Close()
	frames := []transport.Frame{
		{Dst: transport.Broadcast, EtherType: transport.EtherTypeDefault, Payload: []byte("untagged")},
		{Dst: transport.Broadcast, EtherType: transport.EtherTypeDefault, Payload: []byte("tagged"),
			OptionalTag: transport.Tagged(transport.Tag{VID: 101, PCP: 5})},
	}
	if n, err := link.Send(frames); err != nil {
		log.Fatalf("%d of %d frames sent: %v", n, len(frames), err)
	}
}
