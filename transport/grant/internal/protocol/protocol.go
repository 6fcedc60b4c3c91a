// Package protocol is the messages between a program and the service that grants sockets: one JSON
// object in each packet of a Unix socket (SOCK_SEQPACKET), a reply to each request, in order.
package protocol

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rawlane/rawlane/transport"
)

// MaxMessage bounds a message, in bytes. The longest that either side makes are an error's: they
// name an interface, a user and a file.
const MaxMessage = 8192

// MaxName bounds an interface's name, in bytes: IFNAMSIZ less its end.
const MaxName = 15

// MaxSlots is the most that a ring may have, as in package ring.
const MaxSlots = 1 << 16

// What a request asks for.
const (
	// Open asks for sockets on an interface. The reply brings two descriptors, receiving and
	// sending; with XDP, the socket that tells of the interface, the program's attachment, and for
	// each receive queue its socket and that socket's memory.
	Open   = "open"
	Lock   = "lock"   // a port; the reply brings one descriptor, which holds the port's name, or none
	Unlock = "unlock" // the port again
)

// Request is what a program asks for.
type Request struct {
	Do        string              `json:"do"`
	Interface string              `json:"interface"`
	EtherType transport.EtherType `json:"ether_type,omitempty"` // 0: transport.EtherTypeDefault
	Ring      bool                `json:"ring,omitempty"`
	XDP       bool                `json:"xdp,omitempty"`
	Mode      string              `json:"mode,omitempty"`     // of XDP; "": the best
	NoVLANs   bool                `json:"no_vlans,omitempty"` // of XDP
	Slots     int                 `json:"slots,omitempty"`    // of the ring, or of XDP; 0: the default
	Cluster   *uint32             `json:"cluster,omitempty"`  // of Open: nil for all that may be used
	Port      uint8               `json:"port,omitempty"`     // of Lock and Unlock
}

// Reply is an answer. Either Error is set, or the rest as far as the request wants it.
type Reply struct {
	Error *RefusalError `json:"error,omitempty"`
	Open  *Opened       `json:"open,omitempty"`
}

// Opened is what a program cannot learn from its sockets.
type Opened struct {
	Interface    string              `json:"interface"`
	Index        int                 `json:"index"`
	MTU          int                 `json:"mtu"`
	MAC          transport.MAC       `json:"mac"`
	EtherType    transport.EtherType `json:"ether_type"`
	FiltersVLANs bool                `json:"filters_vlans,omitempty"`
	TxQueues     int                 `json:"tx_queues"`
	Namespace    string              `json:"namespace,omitempty"`
	SlotSize     int                 `json:"slot_size,omitempty"`
	Slots        int                 `json:"slots,omitempty"` // of the ring; 0: there is none
	XDP          *OpenedXDP          `json:"xdp,omitempty"`
}

// OpenedXDP is what the sockets of AF_XDP are like.
type OpenedXDP struct {
	Mode     string `json:"mode"`
	Fallback string `json:"fallback,omitempty"` // why not a better mode
	Chunk    int    `json:"chunk"`              // bytes of a frame's memory
	Slots    int    `json:"slots"`              // frames that a socket can receive into
	Queues   int    `json:"queues"`             // receive queues, with a socket each
}

// MaxQueues is how many receive queues' sockets a reply can bring. The kernel takes 253 descriptors
// in one message.
const MaxQueues = 64

// RefusalError is why a request was not met.
type RefusalError struct {
	Cause Cause  `json:"cause"`
	Text  string `json:"text"`
	PID   int    `json:"pid,omitempty"` // of PortLocked and Occupied: the holder, if that is known
	// Program is of Occupied: the holder's XDP program, if that is known.
	Program string `json:"program,omitempty"`
}

func (r *RefusalError) Error() string { return r.Text }

// Cause is the class of a refusal.
type Cause string

// The causes.
const (
	Malformed     Cause = "malformed"      // the request is none
	Denied        Cause = "denied"         // no rule allows it
	Limited       Cause = "limited"        // the user has as much as it may have
	NoInterface   Cause = "no_interface"   // there is none of that name
	InterfaceDown Cause = "interface_down" // it is not up
	PortLocked    Cause = "port_locked"    // another program has the port
	Occupied      Cause = "occupied"       // the interface runs another XDP program
	NotSupported  Cause = "not_supported"  // this system, or its driver, lacks what is needed
	Failed        Cause = "failed"         // the system refused
)

// ParseRequest reads a request. It may come from anybody.
func ParseRequest(b []byte) (*Request, error) {
	r := new(Request)
	if err := decode(b, r); err != nil {
		return nil, err
	}
	return r, r.validate()
}

func (r *Request) validate() error {
	switch {
	case r.Do != Open && r.Do != Lock && r.Do != Unlock:
		return fmt.Errorf("do %q (want open, lock or unlock)", r.Do)
	case !validName(r.Interface):
		return fmt.Errorf("interface %q (want the name of a network interface)", r.Interface)
	case r.EtherType == transport.EtherTypeAny:
		return errors.New("ether_type: any (a granted socket is for one EtherType)")
	case r.Do != Open && (r.Cluster == nil || r.Ring || r.XDP || r.Slots != 0):
		return errors.New("lock and unlock want a cluster, and no ring")
	case r.Ring && r.XDP:
		return errors.New("ring and xdp: want one of the two")
	case !r.XDP && (r.Mode != "" || r.NoVLANs):
		return errors.New("mode and no_vlans are for xdp")
	case r.Mode != "" && !slices.Contains(modes, r.Mode):
		return fmt.Errorf("mode %q (want auto, zero-copy, native or generic)", r.Mode)
	case r.Do == Open && r.Port != 0:
		return errors.New("port: is for lock and unlock")
	case r.Slots != 0 && (!r.Ring && !r.XDP || r.Slots < 2 || r.Slots > MaxSlots):
		return fmt.Errorf("slots %d: out of range (2 to %d, with a ring)", r.Slots, MaxSlots)
	}
	if r.EtherType == 0 {
		r.EtherType = transport.EtherTypeDefault
	}
	return nil
}

// modes are those of package xdp.
var modes = []string{"auto", "zero-copy", "native", "generic"}

// validName reports whether an interface could have that name. It keeps the journal's lines whole.
func validName(name string) bool {
	if name == "" || len(name) > MaxName || name == "." || name == ".." {
		return false
	}
	for _, c := range []byte(name) {
		if c <= ' ' || c >= 0x7f || c == '/' || c == ':' {
			return false
		}
	}
	return true
}

// ParseReply reads a reply.
func ParseReply(b []byte) (*Reply, error) {
	r := new(Reply)
	if err := decode(b, r); err != nil {
		return nil, fmt.Errorf("a reply that is none: %w", err)
	}
	return r, nil
}

// decode reads one object and nothing behind it.
func decode(b []byte, v any) error {
	if len(b) > MaxMessage {
		return fmt.Errorf("longer than %d bytes", MaxMessage)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return fmt.Errorf("not understood: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one object")
	}
	return nil
}

// Append appends a message to b.
func Append(b []byte, message any) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		panic(fmt.Sprintf("protocol: %T does not marshal: %v", message, err)) // its fields are plain
	}
	return append(b, text...)
}
