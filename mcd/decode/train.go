package decode

import (
	"net"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
)

// layerTypeTrain is the type of what follows the UDP header of a train: frames that went together.
const layerTypeTrain = gopacket.LayerType(layerNumber + 1)

func init() {
	gopacket.RegisterLayerType(int(layerTypeTrain), gopacket.LayerTypeMetadata{
		Name:    "rawlane train",
		Decoder: gopacket.DecodeFunc(decodeTrain),
	})
}

// others are what UDP ports meant before they were registered for trains.
var others = make(map[layers.UDPPort]gopacket.LayerType)

// registerTrains has UDP datagrams of a port decode as trains, if they are some.
func registerTrains(port layers.UDPPort) {
	if t := port.LayerType(); t != layerTypeTrain {
		others[port] = t
	}
	layers.RegisterUDPPortLayerType(port, layerTypeTrain)
}

// The headers of trains.
const (
	trainFrames = 1 // UDP source port; an offer has 2, an answer 3
	trainAnswer = 3
)

var (
	trainSrc = net.IPv4(239, 82, 76, 1)
	trainDst = net.IPv4(239, 82, 76, 2)
)

// decodeTrain decodes one frame of a train behind the other, and what a datagram of others carries
// as gopacket does.
func decodeTrain(data []byte, p gopacket.PacketBuilder) error {
	packet, _ := p.(gopacket.Packet) // as all of gopacket's are
	if packet == nil {
		return p.NextDecoder(gopacket.LayerTypePayload)
	}
	ip, _ := packet.NetworkLayer().(*layers.IPv4)
	udp, _ := packet.TransportLayer().(*layers.UDP)
	switch {
	case udp == nil:
		return p.NextDecoder(gopacket.LayerTypePayload)
	case ip == nil || !ip.SrcIP.Equal(trainSrc) || !ip.DstIP.Equal(trainDst) ||
		udp.DstPort.LayerType() != layerTypeTrain || udp.SrcPort < trainFrames || udp.SrcPort > trainAnswer:
		return p.NextDecoder(otherLayer(udp))
	case udp.SrcPort != trainFrames || len(data) == 0:
		return p.NextDecoder(gopacket.LayerTypePayload)
	}
	var cut cutter
	for eth := ethernetOf(p); ; {
		m, size, err := cut.message(eth, 0, data, p)
		if err != nil {
			return err
		}
		p.AddLayer(m)
		if size == len(data) {
			return p.NextDecoder(m.NextLayerType())
		}
		data = data[size:]
	}
}

// otherLayer is UDP.NextLayerType as it were without this package.
func otherLayer(udp *layers.UDP) gopacket.LayerType {
	for _, port := range []layers.UDPPort{udp.DstPort, udp.SrcPort} {
		t := port.LayerType()
		if t == layerTypeTrain {
			t = others[port]
		}
		if t != gopacket.LayerTypePayload {
			return t
		}
	}
	return gopacket.LayerTypePayload
}
