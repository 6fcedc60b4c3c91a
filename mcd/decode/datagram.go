package decode

import (
	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rawlane/rawlane/transport"
)

// layerTypeDatagram is the type of what a datagram of a link over UDP carries: whole frames,
// several in one that the kernel or a NIC is to cut.
const layerTypeDatagram = gopacket.LayerType(layerNumber + 2)

func init() {
	gopacket.RegisterLayerType(int(layerTypeDatagram), gopacket.LayerTypeMetadata{
		Name:    "rawlane datagram",
		Decoder: gopacket.DecodeFunc(decodeDatagram),
	})
}

// RegisterDatagrams has UDP datagrams of a port decode as the frames of links of transport/udp,
// which are layers of their own: Ethernet, Dot1Q if there is a tag, and the message. It is for
// initialisation: no packet may be decoded at the same time.
func RegisterDatagrams(port uint16) {
	layers.RegisterUDPPortLayerType(layers.UDPPort(port), layerTypeDatagram)
}

func decodeDatagram(data []byte, p gopacket.PacketBuilder) error {
	var cut cutter
	var last *Message
	for len(data) > 0 {
		var tag *layers.Dot1Q
		eth, behind := new(layers.Ethernet), transport.HeaderLen
		if err := eth.DecodeFromBytes(data, p); err != nil {
			return err
		}
		etherType := eth.EthernetType
		if etherType == layers.EthernetTypeDot1Q {
			tag = new(layers.Dot1Q)
			if err := tag.DecodeFromBytes(eth.Payload, p); err != nil {
				return err
			}
			etherType, behind = tag.Type, transport.MaxHeaderLen
		}
		if layers.EthernetTypeMetadata[etherType].LayerType != LayerType { // a link's own, or a stranger's
			if last != nil {
				break
			}
			return p.NextDecoder(layers.LayerTypeEthernet)
		}
		p.AddLayer(eth)
		if tag != nil {
			p.AddLayer(tag)
		}
		m, size, err := cut.message(eth, behind, data, p)
		if err != nil {
			return err
		}
		p.AddLayer(m)
		last, data = m, data[size:]
	}
	return p.NextDecoder(gopacket.LayerTypePayload) // the last message's
}
