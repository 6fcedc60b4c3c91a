package ether

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"

	"github.com/rawlane/rawlane/vlan/topology"
)

// Whatever happens to frames - queues of a few of them, routes that change one end at a time and
// let frames overtake one another - each byte arrives once, and in the end no frame is left.
func TestNetwork_EveryByteArrivesOnce(t *testing.T) {
	var lost, late uint64
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 0))
		spec := []string{"flat:4", "tree:2x2", "vbft:2x2x2", "vbft:4x4x4@1G/100M", "vbft3:2x2x2x2x1"}[rng.IntN(5)]
		b := newBench(t, spec, Config{
			Seed: seed, Queue: FullFrame * (1 + rng.IntN(20)), Window: Payload * (1 + rng.IntN(100)),
			Ageing: time.Duration(1+rng.IntN(1000)) * time.Millisecond,
		})
		hosts := len(b.hosts)
		var flows []*Flow
		var sent []int64
		for i := range 10 {
			from := rng.IntN(hosts)
			flows = append(flows, b.NewFlow(from, (from+1+rng.IntN(hosts-1))%hosts, nil))
			sent = append(sent, 0)
			for range 1 + rng.IntN(3) {
				bytes := 1 + rng.Int64N(300_000)
				flows[i].Send(bytes)
				sent[i] += bytes
				b.pass(time.Duration(rng.IntN(int(20 * time.Millisecond))))
			}
			a, to, vid := rng.IntN(hosts), rng.IntN(hosts), vids(b.config.Topology, rng)
			b.SetVID(a, to, vid)
		}
		b.drain()
		for i, f := range flows {
			if f.Received() != sent[i] {
				t.Errorf("seed %d (%s): flow %d has %d of %d bytes: %+v", seed, spec, i, f.Received(), sent[i], f.Counters())
			}
		}
		lost += b.Counters().Dropped
		for _, f := range flows {
			late += f.Counters().Timeouts
		}
	}
	if lost == 0 || late == 0 {
		t.Errorf("%d frames lost, %d timeouts: want some of both", lost, late)
	}
}

func vids(t *topology.Topology, rng *rand.Rand) transport.VID {
	return t.VLANs[rng.IntN(len(t.VLANs))].VID
}
