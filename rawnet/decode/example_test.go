package decode_test

import (
	"fmt"

	"github.com/google/gopacket"

	"github.com/rawlane/rawlane/mcd/decode"
	_ "github.com/rawlane/rawlane/rawnet/decode" // reads what is sent to rawnet's ports
)

func Example() {
	message := &decode.Message{Kind: decode.Unicast, SrcPort: 250, DstPort: 250, From: 1, To: 2, Cluster: 42}
	b := gopacket.NewSerializeBuffer()
	_ = gopacket.SerializeLayers(b, gopacket.SerializeOptions{}, message, gopacket.Payload("\x01\x03\x02\x00dnsmewhere?"))

	packet := gopacket.NewPacket(b.Bytes(), decode.LayerType, gopacket.Default)
	if m, ok := packet.Layer(decode.LayerType).(*decode.Message); ok {
		for _, r := range m.Records() {
			fmt.Printf("%v: %q\n", r, r.Data())
		}
	}
	// Output: packet from "me" to "dns", 6 bytes: "where?"
}
