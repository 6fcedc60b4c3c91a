package mcd

import (
	"errors"

	"github.com/rawlane/rawlane/mcd/internal/wire"
)

// errSealed: with keys, no two frames are alike.
var errSealed = errors.New("frame: the endpoint authenticates frames (Config.KeyFile, Config.Keys)")

// errOneNode: a frame to one node is addressed by its entry in the node table.
var errOneNode = errors.New("frame to one node (want a group or all)")

// AppendFrame appends the bytes of the Ethernet frame in which b would go to a group or to all,
// over a link, by the present route. It sends nothing: it is for programs in the path of a NIC,
// which send on the endpoint's behalf. An endpoint with keys refuses, and so does any for one node.
func (p *Port) AppendFrame(frame []byte, nic int, to Dest, b []byte) ([]byte, error) {
	if p.e.auth != nil {
		return frame, errSealed
	}
	if _, err := p.target(nic, to, len(b)); err != nil {
		return frame, err
	}
	if to.kind == wire.Unicast {
		return frame, errOneNode
	}
	p.out.mu.Lock()
	defer p.out.mu.Unlock()
	p.address(nic, to, nil)
	v := &p.out.envelope
	f, buf := v.frame, make([]byte, wire.HeaderLen+len(b))
	f.Payload = buf[:wire.Put(buf, &v.header, b)]
	return f.AppendTo(frame), nil
}
