// Package decode is a gopacket layer for rawlane's messages, so that captures decode.
//
// Importing it is enough for frames of transport.EtherTypeDefault; Register adds other EtherTypes.
//
//	packet := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.Default)
//	if m, ok := packet.Layer(decode.LayerType).(*decode.Message); ok {
//		fmt.Println(m)
//	}
//
// A frame that a node would drop decodes all the same as far as it goes: Message.Fault says what is
// wrong. The bytes are described in docs/wire-format.md.
package decode

import (
	"errors"
	"fmt"
	"net"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
)

// layerNumber is our layer's number among gopacket's. Those below 2000 are gopacket's own and
// common libraries'.
const layerNumber = 35019 // 0x88cb: near our EtherType and in nobody else's way

// LayerType is the type of the layer Message.
var LayerType = gopacket.RegisterLayerType(layerNumber, gopacket.LayerTypeMetadata{
	Name:    "rawlane",
	Decoder: gopacket.DecodeFunc(decode),
})

func init() { Register(transport.EtherTypeDefault) }

// Register has frames of an EtherType, tagged or not, alone or in a train, decode as messages. It
// is for initialisation: no packet may be decoded at the same time.
func Register(t transport.EtherType) {
	layers.EthernetTypeMetadata[t] = layers.EnumMetadata{
		DecodeWith: gopacket.DecodeFunc(decode),
		Name:       "rawlane",
		LayerType:  LayerType,
	}
	registerTrains(layers.UDPPort(t))
}

// Kind is the kind of a message.
type Kind uint8

// The kinds.
const (
	Unicast   = Kind(wire.Unicast)
	Multicast = Kind(wire.Multicast)
	Broadcast = Kind(wire.Broadcast)
	Probe     = Kind(wire.Probe)
	Reply     = Kind(wire.Reply)
	// Of version 2: nodes with keys get to know each other.
	Contact      = Kind(wire.Contact)
	Introduction = Kind(wire.Introduction)
)

var kindNames = [...]string{
	Unicast: "unicast", Multicast: "multicast", Broadcast: "broadcast", Probe: "probe", Reply: "reply",
	Contact: "contact", Introduction: "introduction",
}

// String names k.
func (k Kind) String() string {
	if int(k) < len(kindNames) && k != 0 {
		return kindNames[k]
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// ErrFault is matched by Message.Fault, and by what NewPacket's error layer says of frames that are
// cut off.
var ErrFault = errors.New("a node would drop this frame")

// Auth is what the header of an authenticated frame, one of version 2, says besides. Its tag is not
// checked: that takes the key.
type Auth struct {
	Encrypted   bool  // the payload is a ciphertext
	KeyID       uint8 // which key seals it: four bits, derived from the key
	Incarnation uint64
	Counter     uint64
}

// Message is a message as it was on the wire. As a gopacket layer its contents are the header's 20
// bytes, or 48 of an authenticated frame; the payload is without padding.
type Message struct {
	layers.BaseLayer
	Version               int
	Kind                  Kind
	transport.OptionalTag // as the sender put it on the frame, even if a switch or NIC has stripped it
	SrcPort               uint8
	DstPort               uint8
	From                  uint16 // the sending node
	To                    uint16 // a node or, of a multicast, a group
	Cluster               uint32
	Length                int // of the payload, in bytes, as the header says
	Checksum              uint32
	HeaderOnly            bool  // the checksum covers the header alone
	Auth                  *Auth // nil: not authenticated
	Fault                 error // why a node would drop it, or nil. Is ErrFault
}

// LayerType returns LayerType: it makes Message a gopacket.Layer.
func (m *Message) LayerType() gopacket.LayerType { return LayerType }

// CanDecode returns LayerType: it makes Message a gopacket.DecodingLayer.
func (m *Message) CanDecode() gopacket.LayerClass { return LayerType }

// NextLayerType returns LayerTypePayload: the meaning of a port's messages is its owner's.
func (m *Message) NextLayerType() gopacket.LayerType { return gopacket.LayerTypePayload }

// DecodeFromBytes fills m from a frame's payload, of which m keeps views. It fails, and reports
// truncation, only where there is less than a header.
func (m *Message) DecodeFromBytes(data []byte, feedback gopacket.DecodeFeedback) error {
	var h wire.Header
	var auth *Auth
	var fault wire.Fault
	headerLen := wire.HeaderLen
	if len(data) > 0 && wire.VersionOf(data) == wire.AuthVersion {
		var a wire.Auth
		fault, headerLen = wire.ParseAuth(data, &h, &a), wire.AuthHeaderLen
		auth = &Auth{a.Encrypted, a.KeyID, a.Incarnation, a.Counter}
	} else {
		fault = wire.Parse(data, &h)
	}
	if fault == wire.TooShort {
		feedback.SetTruncated()
		return fmt.Errorf("rawlane: %d bytes, want at least the header's %d: %w", len(data), headerLen, ErrFault)
	}
	if fault == wire.BadLength {
		feedback.SetTruncated()
	}
	*m = Message{
		BaseLayer:   layers.BaseLayer{Contents: data[:headerLen], Payload: h.Payload},
		Version:     wire.VersionOf(data),
		Kind:        Kind(h.Kind),
		OptionalTag: transport.OptionalTagFromTCI(h.Tagged, h.TCI),
		SrcPort:     h.SrcPort,
		DstPort:     h.DstPort,
		From:        h.From,
		To:          h.To,
		Cluster:     h.Cluster,
		Length:      wire.LengthOf(data),
		Checksum:    h.Checksum(),
		HeaderOnly:  h.HeaderOnly,
		Auth:        auth,
	}
	switch {
	case fault != wire.OK:
		m.Fault = faults[fault]
	case (m.Kind == Probe || m.Kind == Reply) && len(m.Payload) < wire.ProbeHeadLen:
		m.Fault = errShortProbe
	case m.Kind == Contact && len(m.Payload) != wire.ContactLen:
		m.Fault = errContact
	}
	return nil
}

// What nodes drop beside the wire's faults, named as their counters.
var (
	errShortProbe = fmt.Errorf("%w: probe (it is shorter than %d bytes)", ErrFault, wire.ProbeHeadLen)
	errGroupProbe = fmt.Errorf("%w: probe (to or from a group address)", ErrFault)
	errContact    = fmt.Errorf("%w: tag (a contact's payload has %d bytes)", ErrFault, wire.ContactLen)
)

// decodeIn is DecodeFromBytes of what an Ethernet frame carries, or a train; nil is one that is not
// known. A probe to oneself, which looks for loops, goes to all.
func (m *Message) decodeIn(eth *layers.Ethernet, data []byte, feedback gopacket.DecodeFeedback) error {
	if err := m.DecodeFromBytes(data, feedback); err != nil {
		return err
	}
	isProbe := m.Kind == Probe && m.From != m.To || m.Kind == Reply
	if m.Fault == nil && isProbe && eth != nil && (isGroup(eth.DstMAC) || isGroup(eth.SrcMAC)) {
		m.Fault = errGroupProbe
	}
	return nil
}

func isGroup(mac net.HardwareAddr) bool { return len(mac) > 0 && mac[0]&1 != 0 }

// ethernetOf is the header that a packet begins with, or nil.
func ethernetOf(p gopacket.PacketBuilder) *layers.Ethernet {
	packet, _ := p.(gopacket.Packet) // as all of gopacket's are
	if packet == nil {
		return nil
	}
	eth, _ := packet.LinkLayer().(*layers.Ethernet)
	return eth
}

// faults are made once: decoding allocates nothing.
var faults = func() (made [8]error) {
	for f := range made {
		made[f] = fmt.Errorf("%w: %v", ErrFault, wire.Fault(f))
	}
	return made
}()

func decode(data []byte, p gopacket.PacketBuilder) error {
	m := new(Message)
	if err := m.decodeIn(ethernetOf(p), data, p); err != nil {
		return err
	}
	p.AddLayer(m)
	return p.NextDecoder(m.NextLayerType())
}

// SerializeTo puts the header before what is in b: it makes Message a gopacket.SerializableLayer.
// Length and checksum are always computed, whatever m and the options say. An authenticated frame
// is an error: its tag takes the key.
func (m *Message) SerializeTo(b gopacket.SerializeBuffer, _ gopacket.SerializeOptions) error {
	if m.Auth != nil {
		return errAuthenticated
	}
	n := len(b.Bytes())
	if n > maxPayload {
		return &transport.SizeError{Size: n, Max: maxPayload}
	}
	if _, err := b.PrependBytes(wire.HeaderLen); err != nil {
		return err
	}
	h := wire.Header{Kind: wire.Kind(m.Kind), Tagged: m.Tagged, HeaderOnly: m.HeaderOnly, DstPort: m.DstPort,
		SrcPort: m.SrcPort, From: m.From, To: m.To, Cluster: m.Cluster}
	if m.Tagged {
		h.TCI = m.Tag.TCI()
	}
	message := b.Bytes()
	wire.Put(message, &h, message[wire.HeaderLen:])
	return nil
}

var errAuthenticated = errors.New("rawlane: an authenticated frame is not made without its key " +
	"(set Auth to nil for one of version 1)")

// maxPayload is what the header's length field can tell.
const maxPayload = 1<<16 - 1

// String puts m on one line: "1:7 -> 2:9 unicast cluster 0x1020304 5 bytes".
func (m *Message) String() string {
	to := fmt.Sprintf("%d:%d", m.To, m.DstPort)
	switch m.Kind {
	case Multicast:
		to = "group " + to
	case Broadcast, Contact:
		to = fmt.Sprintf("all:%d", m.DstPort)
	case Probe, Reply:
		return m.probeString()
	}
	s := fmt.Sprintf("%d:%d -> %s %v cluster %#x %d bytes", m.From, m.SrcPort, to, m.Kind, m.Cluster, m.Length)
	return s + m.suffix()
}

func (m *Message) suffix() (s string) {
	if a := m.Auth; a != nil {
		s += fmt.Sprintf(" key %d incarnation %016x counter %d", a.KeyID, a.Incarnation, a.Counter)
		if a.Encrypted {
			s += " encrypted"
		}
	}
	if m.Tagged {
		s += fmt.Sprintf(" sent with %v", m.OptionalTag)
	}
	if m.Fault != nil {
		s += fmt.Sprintf(" [%v]", m.Fault)
	}
	return s
}
