package decode_test

import (
	"encoding/hex"
	"fmt"

	_ "github.com/rawlane/rawlane/barrier/decode" // reads what is sent to the port of barriers
	"github.com/rawlane/rawlane/mcd/decode"
)

func Example() {
	message := decode.Message{Kind: decode.Multicast, DstPort: 254} // of a capture, by DecodeFromBytes
	message.Payload, _ = hex.DecodeString("41070300" + "0102030405060708" + "00000005" + "00000009" + "a1a2a3a4" + "b1b2b3b4")
	for _, r := range message.Records() {
		fmt.Println(r)
	}
	// Output: barrier 7 of group 0102030405060708 epoch 5, generation 9: notify, label 3
}
