package vlan

import (
	"fmt"

	"github.com/mdlayher/ethernet"

	"github.com/rawlane/rawlane/transport"
)

// Template is a frame but for its payload: header fields resolved once per destination, for a sender to
// copy per message. The zero Template is empty; make one with NewTemplate.
type Template struct {
	frame transport.Frame
	bytes []byte
}

// NewTemplate resolves the route to dst and returns the template of frames from src of the given type.
func NewTemplate(r Router, src, dst transport.MAC, etherType transport.EtherType) (Template, error) {
	t := Template{frame: transport.Frame{Dst: dst, Src: src, EtherType: etherType}}
	t.frame.OptionalTag = r.Route(dst)
	if err := t.frame.OptionalTag.Validate(); err != nil {
		return Template{}, fmt.Errorf("route to %v: %w", dst, err)
	}
	header := ethernet.Frame{
		Destination: dst.HardwareAddr(),
		Source:      src.HardwareAddr(),
		EtherType:   ethernet.EtherType(etherType),
	}
	if t.frame.Tagged {
		header.VLAN = &ethernet.VLAN{
			Priority:     ethernet.Priority(t.frame.Tag.PCP),
			DropEligible: t.frame.Tag.DEI,
			ID:           uint16(t.frame.Tag.VID),
		}
	}
	b, err := header.MarshalBinary()
	if err != nil {
		return Template{}, fmt.Errorf("route to %v: %w", dst, err)
	}
	t.bytes = b[:t.frame.WireLen()] // without the padding that MarshalBinary adds
	return t, nil
}

// Frame returns the frame that carries payload, which it does not copy.
func (t *Template) Frame(payload []byte) transport.Frame {
	f := t.frame
	f.Payload = payload
	return f
}

// Header returns the header's bytes, tag included: 14 or 18. They are the template's own: do not change them.
func (t *Template) Header() []byte { return t.bytes }

// Tag returns the tag of the template's frames, if they have one.
func (t *Template) Tag() transport.OptionalTag { return t.frame.OptionalTag }
