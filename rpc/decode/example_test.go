package decode_test

import (
	"encoding/hex"
	"fmt"

	"github.com/rawlane/rawlane/mcd/decode"
	_ "github.com/rawlane/rawlane/rpc/decode" // reads what is sent to rpc's port
)

func Example() {
	message := decode.Message{Kind: decode.Unicast, DstPort: 249} // of a capture, by DecodeFromBytes
	message.Payload, _ = hex.DecodeString("21000100000000010000000200000007" + "0000000c" +
		"0203000e" + "00010000000000000000" + "0000000e" + "12000000" + "00000000000012ab" + "6869")
	for _, r := range message.Records() {
		fmt.Println(r)
	}
	// Output:
	// requests 7, ack 12
	// call 12ab: response: done, 2 bytes
}
