package decode_test

import (
	"encoding/hex"
	"fmt"

	"github.com/rawlane/rawlane/mcd/decode"
	_ "github.com/rawlane/rawlane/memfifo/decode" // reads what is sent to memfifo's port
)

func Example() {
	message := decode.Message{Kind: decode.Unicast, DstPort: 253} // of a capture, by DecodeFromBytes
	message.Payload, _ = hex.DecodeString("21000100000000010000000200000007" + "0000000c" +
		"0d050002" + "6974")
	for _, r := range message.Records() {
		fmt.Println(r)
	}
	// Output:
	// requests 7, ack 12
	// put continue, 2 bytes, notify
}
