package decode_test

import (
	"encoding/hex"
	"fmt"

	_ "github.com/rawlane/rawlane/cluster/decode" // reads what is sent to the ports of discovery and exchanges
	"github.com/rawlane/rawlane/mcd/decode"
)

func Example() {
	message := decode.Message{Kind: decode.Unicast, DstPort: 252} // of a capture, by DecodeFromBytes
	message.Payload, _ = hex.DecodeString("07050000" + "0000001a" + "0000002b" + "00000003" + "00000001" + "00000009" + "74776f")
	for _, r := range message.Records() {
		fmt.Printf("%v: %q\n", r, r.Data())
	}
	// Output: exchange: part 3 of life 0000001a to 0000002b, 3 bytes from 1 on, of 9: "two"
}
