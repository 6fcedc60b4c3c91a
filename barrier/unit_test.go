package barrier_test

import (
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/internal/slot"
	"github.com/rawlane/rawlane/barrier/internal/slot/slottest"
	"github.com/rawlane/rawlane/barrier/offload"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fault"
)

// unit does below a link what the program in the kernel does below a socket.
type unit struct {
	transport.Link
	bytes []byte

	index     int // of its interface
	namespace string

	mu       sync.Mutex // guards what follows
	slots    []*slottest.Twin
	keys     map[*slot.Slot][]slot.Key
	members  map[slot.Key]slot.Member
	room     int // for slots
	verdicts map[slot.Verdict]int
}

var (
	_ barrier.Unit      = (*unit)(nil)
	_ barrier.Unit      = (*offload.Unit)(nil)
	_ transport.Wrapper = (*unit)(nil)
)

func newUnit(l transport.Link) *unit {
	return &unit{
		Link: l, room: 64, keys: map[*slot.Slot][]slot.Key{}, members: map[slot.Key]slot.Member{},
		verdicts: map[slot.Verdict]int{},
	}
}

// Interface implements barrier.Unit: a fabric's link has none.
func (u *unit) Interface() (index int, namespace string) { return u.index, u.namespace }

// Unwrap implements transport.Wrapper.
func (u *unit) Unwrap() transport.Link { return u.Link }

// Poll implements transport.Link.
func (u *unit) Poll(frames []transport.Frame) (int, error) {
	n, err := u.Link.Poll(frames)
	u.mu.Lock()
	defer u.mu.Unlock()
	kept := 0
	for _, f := range frames[:n] {
		v, out := slot.Pass, []byte(nil)
		u.bytes = f.AppendTo(u.bytes[:0])
		if k, ok := slottest.KeyOf(u.bytes); ok && !f.Tagged {
			if m, ok := u.members[k]; ok {
				v, out = u.slots[m.Slot].Handle(u.bytes, &m)
				u.verdicts[v]++
			}
		}
		switch v {
		case slot.Pass:
			frames[kept] = f
			kept++
		case slot.Transmit:
			release, err := transport.ParseFrame(out)
			if err != nil {
				return kept, err
			}
			if _, err := u.Send([]transport.Frame{release}); err != nil {
				return kept, err
			}
		}
	}
	return kept, err
}

func (u *unit) Add(c *slot.Config) (*slot.Slot, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if len(u.keys) == u.room {
		return nil, offload.ErrFull
	}
	s := new(slot.Slot)
	twin := slottest.New(s, c)
	u.keys[s] = nil
	for _, m := range c.Members {
		key := c.Key(m.Node)
		u.members[key] = m.At(len(u.slots))
		u.keys[s] = append(u.keys[s], key)
	}
	u.slots = append(u.slots, twin)
	s.Open(c.Generation)
	return s, nil
}

func (u *unit) Remove(s *slot.Slot) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, key := range u.keys[s] {
		delete(u.members, key)
	}
	delete(u.keys, s)
}

// inUse returns how many slots are taken.
func (u *unit) inUse() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.keys)
}

// everUsed returns how many slots were taken since the beginning.
func (u *unit) everUsed() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.slots)
}

// seen returns how many frames of members had a verdict since it was called last.
func (u *unit) seen(v slot.Verdict) int {
	u.mu.Lock()
	defer u.mu.Unlock()
	n := u.verdicts[v]
	u.verdicts[v] = 0
	return n
}

// openOffload makes a cluster whose node 0 has a unit, below which are the faults.
func openOffload(t testing.TB, size int, cfg fault.Config, seed uint64, customize func(mcd.NodeID, *mcd.Config)) (*cluster, *unit) {
	t.Helper()
	c := &cluster{faults: make([][]*fault.Link, size)}
	var u *unit
	c.eps = mcdtest.Open(t, size, mcdtest.Config{
		Endpoint:  mcd.Config{Spin: -1},
		Customize: customize,
		Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
			lossy, err := fault.New(l, rand.New(rand.NewPCG(seed, uint64(node))), cfg)
			if err != nil {
				t.Fatal(err)
			}
			c.faults[node] = append(c.faults[node], lossy)
			if node != 0 {
				return lossy
			}
			u = newUnit(lossy)
			return u
		},
	})
	for k, e := range c.eps {
		cfg := c.cfg
		if k == 0 {
			cfg.Unit = u
		}
		c.services = append(c.services, service(t, e, cfg))
	}
	t.Cleanup(func() { closeAll(c.services) })
	return c, u
}
