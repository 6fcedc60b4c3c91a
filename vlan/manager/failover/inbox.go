package failover

import (
	"bytes"
	"sync"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// maxInbox bounds the probes that wait for the driver's goroutine: those of 100 ms, at some tens of
// thousands a second. Further ones are dropped, as on the wire.
const maxInbox = 4096

// received is a peer's probe, or a peer's answer to the driver's probe.
type received struct {
	answer      bool
	from        transport.MAC
	incarnation uint32
	vid         transport.VID
	body        []byte
}

// inbox takes probes from the goroutine that polls the endpoint to the driver's.
type inbox struct {
	wake chan struct{} // of capacity 1: holds a token if the driver has work

	mu    sync.Mutex // guards queue
	queue []received
}

func newInbox() *inbox { return &inbox{wake: make(chan struct{}, 1)} }

func (b *inbox) put(r received) {
	b.mu.Lock()
	if len(b.queue) < maxInbox {
		b.queue = append(b.queue, r)
	}
	b.mu.Unlock()
	b.wakeUp()
}

func (b *inbox) wakeUp() {
	select {
	case b.wake <- struct{}{}:
	default: // the driver is awake
	}
}

func (b *inbox) drain() []received {
	b.mu.Lock()
	defer b.mu.Unlock()
	queue := b.queue
	b.queue = nil
	return queue
}

// onProbe takes in a probe or an answer. The endpoint calls it while it polls.
func (d *Driver) onProbe(p *mcd.Probe) {
	if p.NIC != d.cfg.NIC || len(p.Body) == 0 || !p.SentTag.Tagged {
		return
	}
	d.inbox.put(received{p.Reply, p.Src, p.Incarnation, p.SentTag.Tag.VID, bytes.Clone(p.Body)})
}
