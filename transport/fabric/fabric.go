package fabric

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/transport"
)

// Config of a fabric. The zero Config works.
type Config struct {
	// MTU is the largest payload in bytes, MinMTU to MaxMTU. 0 means DefaultMTU.
	MTU int
	// QueueFrames is how many frames a link holds until they are polled, 2 to MaxQueueFrames,
	// rounded up to a power of two. 0 means DefaultQueueFrames.
	QueueFrames int
	// DropWhenFull loses a frame at each receiver whose queue is full (RxDropped). Otherwise the
	// sender gets transport.ErrBusy and the frame arrives nowhere: no frame is ever lost, as on
	// Ethernet with flow control, but a receiver that does not poll stops its senders.
	DropWhenFull bool
	// Ageing is how long switches remember an address that sends nothing. 0 means for ever: real
	// switches take 300 s, but here a station's end is noticed, and without ageing no clock is
	// read. Less than a millisecond is refused.
	Ageing time.Duration
	// Addresses is how many addresses each switch can learn. 0 means 8192.
	Addresses int
}

// minAgeing is far below what switches take. Most often less is a number whose unit was forgotten.
const minAgeing = time.Millisecond

// complete returns c with its defaults, or an error that names the wrong field.
func (c Config) complete() (Config, error) {
	if c.MTU == 0 {
		c.MTU = DefaultMTU
	}
	if c.MTU < MinMTU || c.MTU > MaxMTU {
		return c, fmt.Errorf("fabric: Config.MTU is %d (want %d to %d)", c.MTU, MinMTU, MaxMTU)
	}
	if c.QueueFrames == 0 {
		c.QueueFrames = DefaultQueueFrames
	}
	if c.QueueFrames < 2 || c.QueueFrames > MaxQueueFrames {
		return c, fmt.Errorf("fabric: Config.QueueFrames is %d (want 2 to %d)", c.QueueFrames, MaxQueueFrames)
	}
	c.QueueFrames = 1 << bits.Len(uint(c.QueueFrames-1))
	if c.Ageing != 0 && c.Ageing < minAgeing || c.Addresses < 0 {
		return c, fmt.Errorf("fabric: Config.Ageing is %v and Config.Addresses %d (want neither negative, and "+
			"Ageing 0 or %v at least; a number without a unit is in nanoseconds)", c.Ageing, c.Addresses, minAgeing)
	}
	return c, nil
}

// Fabric is a network in memory: switches and hubs, cables between them, links attached to them.
// Its methods, and those of its parts, may be called from any goroutine, also while frames pass.
type Fabric struct {
	cfg    Config
	number int64

	// mu guards the fields below, the switches' tables and the sending side of each queue. It is
	// the only lock; nothing is waited for under it. Poll does not take it.
	mu       sync.Mutex
	devices  int                    // added so far
	attached int                    // links attached so far, which numbers them
	macs     map[transport.MAC]bool // of open links
	named    map[transport.VID]bool // VIDs in any port's configuration
	path     path
}

// made counts the fabrics of this process, for their names.
var made atomic.Int64

// New makes an empty fabric. Errors: a field of cfg out of range.
func New(cfg Config) (*Fabric, error) {
	cfg, err := cfg.complete()
	if err != nil {
		return nil, err
	}
	return &Fabric{
		cfg:    cfg,
		number: made.Add(1) - 1,
		macs:   make(map[transport.MAC]bool),
		named:  make(map[transport.VID]bool),
	}, nil
}

// Links makes n links on one switch, in a fabric of their own: the shortest way to a network.
// Errors: more links than a switch has ports (4096).
func Links(n int) ([]*Link, error) {
	f, err := New(Config{})
	if err != nil {
		return nil, err
	}
	return f.AddSwitch("").Links(n)
}

// String returns f's name: fabric0, fabric1, ... in the order in which this process made them.
func (f *Fabric) String() string { return fmt.Sprintf("fabric%d", f.number) }

// now is the instant for the switches: always the same if addresses do not age.
func (f *Fabric) now() monotime.Time {
	if f.cfg.Ageing == 0 {
		return monotime.Time{}
	}
	return clock.Now()
}
