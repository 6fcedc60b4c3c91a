package udp_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// Two stations that know each other's addresses. Ports that are not 0 need no MAC: all who write the
// same address know it.
func Example() {
	a, err := udp.Open("127.0.0.1:0", udp.Config{MAC: transport.MAC{2, 0, 0, 0, 0, 1}})
	if err != nil {
		log.Fatal(err)
	}
	defer a.Close()
	b, err := udp.Open("127.0.0.1:0", udp.Config{
		MAC:      transport.MAC{2, 0, 0, 0, 0, 2},
		Stations: []udp.Station{{Addr: a.Addr().String(), MAC: a.MAC()}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer b.Close()

	frames := []transport.Frame{{Dst: a.MAC(), EtherType: transport.EtherTypeDefault, Payload: []byte("hello")}}
	if _, err := b.Send(frames); err != nil {
		log.Fatal(err)
	}
	for n := 0; n == 0; {
		if err := a.Wait(context.Background()); err != nil {
			log.Fatal(err)
		}
		if n, err = a.Poll(frames); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Printf("%s from b: %v\n", frames[0].Payload[:5], frames[0].Src == b.MAC())
	// Output: hello from b: true
}
