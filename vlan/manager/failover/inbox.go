package failover

import (
	"bytes"
	"sync"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// maxInbox is how much is kept for the driver's goroutine: what comes in while that is not
// scheduled for 100 ms, of some thousands of probes a second. What is over is lost, as on the wire.
const maxInbox = 4096

// heard is a probe of a peer, or an answer to one of ours.
type heard struct {
	answer bool
	from   transport.MAC
	life   uint32
	vid    transport.VID
	body   []byte
}

// inbox takes probes from whoever polls to the driver's goroutine.
type inbox struct {
	bell chan struct{} // of capacity 1

	mu    sync.Mutex // guards queue
	queue []heard
}

func (b *inbox) init() { b.bell = make(chan struct{}, 1) }

func (b *inbox) put(h heard) {
	b.mu.Lock()
	if len(b.queue) < maxInbox {
		b.queue = append(b.queue, h)
	}
	b.mu.Unlock()
	b.ring()
}

func (b *inbox) ring() {
	select {
	case b.bell <- struct{}{}:
	default: // it has been rung
	}
}

func (b *inbox) take() []heard {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.queue
	b.queue = nil
	return queue
}

// hear is called by whoever polls.
func (d *Driver) hear(p *mcd.Probe) {
	if p.NIC != d.cfg.NIC || len(p.Body) == 0 || !p.SentTag.Tagged {
		return
	}
	d.inbox.put(heard{answer: p.Reply, from: p.Src, life: p.Incarnation, vid: p.SentTag.Tag.VID, body: bytes.Clone(p.Body)})
}
