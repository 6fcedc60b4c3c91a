package memfifo_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/memfifo"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/fault"
	"github.com/rawlane/rawlane/vlan"
)

var (
	modelSeeds = flag.Int("model.seeds", 10, "TestModel: how many seeds")
	modelSeed  = flag.Uint64("model.seed", 0, "TestModel: the first seed; 0: random")
)

const (
	writers = 2       // goroutines at each node
	region  = 140_000 // of one writer in each window: longer than 128 KiB
	words   = 8       // for atomic operations in each window: shared, then one of each writer
	canary  = 64      // bytes around each window
)

// site is a node of the model: a window with canaries around it, and FIFOs.
type site struct {
	d     *memfifo.Domain
	all   []byte
	w     *memfifo.Window
	fifos []*memfifo.FIFO
	most  []int                // the longest record of each
	added [words]atomic.Uint64 // by all, to the shared words
	notes atomic.Uint64
}

// mem is where a writer's region is in the window.
func (s *site) mem(writer int) []byte { return s.w.Bytes()[regionAt(writer):][:region] }

func regionAt(writer int) int64 { return int64(8*(words+writers*6)) + int64(writer)*region }

func newSite(t *testing.T, d *memfifo.Domain, nodes int, heavy bool, rng *rand.Rand) *site {
	s := &site{d: d, all: bytes.Repeat([]byte{0xa5}, int(regionAt(nodes*writers))+2*canary)}
	inside := s.all[canary : len(s.all)-canary]
	clear(inside)
	sizes := []int{64, 200, 3000, 300_000}
	if heavy {
		sizes = sizes[3:]
	}
	var err error
	s.w, err = d.Register(1, inside, memfifo.All)
	must(t, err)
	for id := range 1 + rng.IntN(3) {
		size := sizes[rng.IntN(len(sizes))]
		q, err := d.NewFIFO(uint16(id), make([]byte, size))
		must(t, err)
		s.fifos, s.most = append(s.fifos, q), append(s.most, min(size/2-4, memfifo.MaxRecord))
	}
	return s
}

// model is a cluster whose memory is known.
type model struct {
	t     *testing.T
	seed  uint64
	heavy bool // much is long, and much is pushed
	each  int  // operations of a writer
	sites []*site
	ops   atomic.Int64
}

// Memory equals the model's, and each record comes once and in order, whatever links do to frames.
func TestModel(t *testing.T) {
	seed := *modelSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	var ops int64
	p := newPoints()
	var simulated time.Duration
	seeds := enough(*modelSeeds, 2)
	for range seeds {
		synctest.Test(t, func(t *testing.T) {
			begun := time.Now()
			ops += runModel(t, seed, p)
			simulated += time.Since(begun)
		})
		if t.Failed() {
			t.Fatalf("go test ./memfifo -run TestModel -model.seeds 1 -model.seed %d", seed)
		}
		seed++
	}
	t.Logf("%d operations in %v of simulated time", ops, simulated)
	figures := map[string]uint64{"operations": uint64(ops), "runs": uint64(seeds)}
	for name, n := range p.hit {
		figures["point: "+name] = n
	}
	text, err := json.Marshal(figures)
	must(t, err)
	t.Logf("figures %s", text)
}

// pointsEvery is which seeds have links that err at marked points: a quarter of them.
const pointsEvery = 4

// openModel opens the cluster of a seed.
func openModel(t *testing.T, seed uint64, nodes, mtu int, cfg fault.Config, p *points) *cluster {
	if seed%pointsEvery != 0 {
		return openMTU(t, nodes, mtu, -1, cfg, seed)
	}
	c := &cluster{}
	tables := make([]*vlan.Table, nodes)
	for k := range tables {
		table, err := vlan.NewTable(nil)
		must(t, err)
		tables[k] = table
	}
	c.start(t, nodes, mcdtest.Config{
		Fabric: fabric.Config{MTU: mtu}, Endpoint: mcd.Config{Spin: -1},
		Customize: func(node mcd.NodeID, cfg *mcd.Config) { cfg.Router = tables[node] },
		Wrap: func(node mcd.NodeID, _ int, inner transport.Link) transport.Link {
			rng := rand.New(rand.NewPCG(seed, 100+uint64(node)))
			return newErringLink(c.faulty(t, inner, node, cfg, seed), p, tables[node], rng)
		},
	})
	return c
}

func runModel(t *testing.T, seed uint64, p *points) int64 {
	rng := rand.New(rand.NewPCG(seed, 0))
	nodes := 2 + rng.IntN(5)
	some := func(most float64) float64 { return most * rng.Float64() * float64(rng.IntN(2)) }
	mtu := []int{100, 400, 1500, 1500, 9000, 65535}[rng.IntN(6)]
	c := openModel(t, seed, nodes, mtu, fault.Config{
		Loss: some(0.3), Duplicate: some(0.3), Reorder: some(0.3), Delay: some(0.3), DelayMax: 3 * time.Millisecond, Corrupt: some(0.05),
	}, p)
	m := &model{t: t, seed: seed, heavy: rng.IntN(4) == 0, each: enough(500, 200)}
	if m.heavy { // in short frames it would take minutes, with the race detector
		m.each = m.each * min(mtu, 1500) / 1500
	}
	for _, d := range c.domains {
		m.sites = append(m.sites, newSite(t, d, nodes, m.heavy, rng))
	}
	done, cancel := context.WithCancel(t.Context())
	taken := make([][]*reader, nodes)
	var taking, writing sync.WaitGroup
	for k, s := range m.sites {
		for _, q := range s.fifos {
			r := &reader{next: make([]int, nodes*writers)}
			if rng.IntN(3) == 0 {
				r.pause = time.Duration(rng.IntN(10)) * time.Millisecond
			}
			taken[k] = append(taken[k], r)
			for range 1 + rng.IntN(2) {
				taking.Go(func() { r.run(done, t, q) })
			}
		}
	}
	all := make([]*writer, 0, nodes*writers)
	for number := range nodes * writers {
		w := newWriter(m, number)
		all = append(all, w)
		writing.Go(func() {
			defer func() {
				if t.Failed() {
					c.close() // so that nobody waits for ever
				}
			}()
			w.run(t.Context())
		})
	}
	writing.Wait()
	for k := range m.sites {
		for i, r := range taken[k] {
			r.await(t, func(number int) int { return all[number].pushed[k][i] })
		}
	}
	cancel()
	taking.Wait()
	m.compare(all)
	return m.ops.Load()
}

// compare checks all memory when every writer has flushed.
func (m *model) compare(all []*writer) {
	frame := bytes.Repeat([]byte{0xa5}, canary)
	for k, s := range m.sites {
		if !bytes.Equal(s.all[:canary], frame) || !bytes.Equal(s.all[len(s.all)-canary:], frame) {
			m.t.Errorf("node %d: written around the window", k)
		}
		for _, w := range all {
			if !bytes.Equal(s.mem(w.number), w.mem[k]) {
				m.t.Errorf("node %d: what writer %d has put is not what is there", k, w.number)
			}
			if v, _ := s.w.Load(w.ownWord()); v != w.own[k] {
				m.t.Errorf("node %d: writer %d's own word is %d, not %d", k, w.number, v, w.own[k])
			}
		}
		for i := range words {
			if v, _ := s.w.Load(int64(8 * i)); v != s.added[i].Load() {
				m.t.Errorf("node %d: word %d is %d, and %d were added", k, i, v, s.added[i].Load())
			}
		}
		if got, want := s.w.Notified(), s.notes.Load(); got != want {
			m.t.Errorf("node %d: %d notifications, want %d", k, got, want)
		}
		if n := s.d.Counters(); n.Malformed != 0 {
			m.t.Errorf("node %d: %+v", k, n)
		}
	}
}

// reader pops the records of a FIFO, in one or several goroutines.
type reader struct {
	pause time.Duration // between records
	mu    sync.Mutex
	next  []int // by writer
}

func (r *reader) run(ctx context.Context, t *testing.T, q *memfifo.FIFO) {
	b := make([]byte, memfifo.MaxRecord)
	for q.Wait(ctx) == nil {
		r.mu.Lock()
		n, ok, err := q.TryPop(b)
		if ok {
			number, i, stampErr := readStamp(b[:n])
			if err != nil || stampErr != nil {
				t.Errorf("%v, %v", err, stampErr)
			} else if i != r.next[number] {
				t.Errorf("writer %d: record %d came, record %d was next", number, i, r.next[number])
			}
			r.next[number]++
		}
		r.mu.Unlock()
		time.Sleep(r.pause)
	}
}

// await waits until all that was pushed was taken.
func (r *reader) await(t *testing.T, pushed func(number int) int) {
	for number := range r.next {
		for range 100_000 {
			r.mu.Lock()
			n := r.next[number]
			r.mu.Unlock()
			if n == pushed(number) {
				break
			}
			time.Sleep(time.Millisecond)
		}
		if r.next[number] != pushed(number) {
			t.Errorf("writer %d: %d records were taken of %d", number, r.next[number], pushed(number))
		}
	}
}
