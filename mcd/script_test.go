package mcd

import (
	"sync"
	"testing"

	"github.com/rawlane/rawlane/mcd/internal/wire"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/linktest"
)

// script is a link that does what a test says.
type script struct {
	transport.Link
	send  func(frames []transport.Frame) (int, error) // nil: as the link
	poll  func()                                      // before each poll, if set
	join  func(group transport.MAC) error
	mu    sync.Mutex
	masks []bool // of MaskWakeups
	left  []transport.MAC
}

func (l *script) Send(frames []transport.Frame) (int, error) {
	if l.send == nil {
		return l.Link.Send(frames)
	}
	return l.send(frames)
}

func (l *script) Poll(frames []transport.Frame) (int, error) {
	if l.poll != nil {
		l.poll()
	}
	return l.Link.Poll(frames)
}

func (l *script) MaskWakeups(on bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.masks = append(l.masks, on)
}

func (l *script) Join(group transport.MAC) error {
	if l.join != nil {
		return l.join(group)
	}
	return nil
}

func (l *script) Leave(group transport.MAC) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.left = append(l.left, group)
	return nil
}

// openScripts opens node 0 on scripts, one per link, and its port 1. Node 1 has the other ends,
// which are returned.
func openScripts(t *testing.T, n int, change ...func(*Config)) (e *Endpoint, p *Port, links []*script, others []*linktest.End) {
	t.Helper()
	var all []transport.Link
	var macs []transport.MAC
	for range n {
		x, y := linktest.Pipe()
		links, others = append(links, &script{Link: x}), append(others, y)
		all, macs = append(all, links[len(links)-1]), append(macs, y.MAC())
	}
	cfg := Config{Spin: -1, Nodes: []Node{{ID: 1, MACs: macs}}}
	for _, c := range change {
		c(&cfg)
	}
	e, err := Open(cfg, all...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	if p, err = e.OpenPort(1, PortOptions{}); err != nil {
		t.Fatal(err)
	}
	return e, p, links, others
}

// twoLinks makes two links on a switch, which wake those who wait, as linktest.Pipe's do not.
func twoLinks(t *testing.T) (x, y transport.Link) {
	t.Helper()
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	return links[0], links[1]
}

func descTo(node NodeID, text string) *SendDesc {
	return &SendDesc{To: To(Addr{Node: node, Port: 1}), Payload: []byte(text)}
}

// arrive has a message without data come from node 1, for a port of the endpoint.
func arrive(t *testing.T, e *Endpoint, from *linktest.End, port PortID) {
	t.Helper()
	b := make([]byte, HeaderLen)
	wire.Seal(b, &wire.Header{Kind: wire.Unicast, From: 1, DstPort: uint8(port)})
	frames := []transport.Frame{{Dst: e.MAC(0), EtherType: transport.EtherTypeDefault, Payload: b}}
	if _, err := from.Send(frames); err != nil {
		t.Error(err)
	}
}
