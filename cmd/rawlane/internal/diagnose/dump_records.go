package diagnose

import (
	"fmt"
	"strconv"
	"strings"

	barrierdecode "github.com/rawlane/rawlane/barrier/decode"
	clusterdecode "github.com/rawlane/rawlane/cluster/decode"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	memdecode "github.com/rawlane/rawlane/memfifo/decode"
	netdecode "github.com/rawlane/rawlane/rawnet/decode"
	rpcdecode "github.com/rawlane/rawlane/rpc/decode"
)

// registers are what has records of its own on a port, by the names of --port.
var registers = map[string]func(port uint8){
	"memfifo": memdecode.Register, "rawnet": netdecode.Register, "packets": netdecode.RegisterPackets,
	"rpc": rpcdecode.Register, "barrier": barrierdecode.Register, "exchange": clusterdecode.Register,
}

// recordPorts are these names, for people.
const recordPorts = "memfifo, rawnet, packets, rpc, barrier or exchange"

// registerPort takes one --port: rpc=17.
func registerPort(text string) error {
	name, number, _ := strings.Cut(text, "=")
	register := registers[name]
	port, err := strconv.ParseUint(number, 10, 8)
	if register == nil || err != nil {
		return cli.Misuse("--port %s: want %s, then = and a port of 0 to 255", text, recordPorts)
	}
	register(uint8(port))
	return nil
}

// describeRecords shows a message's records, one behind the other, with the first bytes of the data
// of each.
func (m *dumpMessage) describeRecords() string {
	var s strings.Builder
	for _, r := range m.Records {
		fmt.Fprintf(&s, " | %v", r)
		if data := r.Data(); len(data) > 0 && m.shown > 0 {
			fmt.Fprintf(&s, " %q", data[:min(len(data), m.shown)])
		}
	}
	return s.String()
}
