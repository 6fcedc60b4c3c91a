package mcd_test

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// narrow is a link of a small MTU.
type narrow struct {
	transport.Link
	mtu int
}

func (n *narrow) MTU() int { return n.mtu }

// A link has to have room for a message of one byte at least.
func TestOpen_SmallestMTU(t *testing.T) {
	l := switched(t, 1)[0]
	defer l.Close()
	for _, mtu := range []int{0, mcd.HeaderLen - 1, mcd.HeaderLen} {
		if _, err := mcd.Open(mcd.Config{}, &narrow{l, mtu}); err == nil || !strings.Contains(err.Error(), "leaves no room") {
			t.Errorf("MTU %d: %v", mtu, err)
		}
	}
	e, err := mcd.Open(mcd.Config{}, &narrow{l, mcd.HeaderLen + 1})
	if err != nil {
		t.Fatal(err)
	}
	if n := e.MaxPayload(); n != 1 {
		t.Errorf("messages of %d bytes", n)
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
}

// trainer is a link that says that it sends trains.
type trainer struct {
	narrow
	trainMTU, frames int
}

func (l *trainer) TrainMTU() int                   { return l.trainMTU }
func (l *trainer) TrainFrames() int                { return l.frames }
func (l *trainer) Trains() (sent, received uint64) { return 0, 0 }

// What may go in a train is what the train of every link takes, and as many as each of them.
func TestOpen_Trains(t *testing.T) {
	const most = 1<<16 - 1 // of a message
	for _, c := range []struct {
		name                  string
		links                 []trainer // of which a TrainMTU of 0 is one that sends none
		payload, long, frames int
	}{
		{"one link", []trainer{{narrow{mtu: 1500}, 1400, 20}}, 1400 - mcd.HeaderLen, 1500 - mcd.HeaderLen, 20},
		{"the second has shorter trains, the first longer frames",
			[]trainer{{narrow{mtu: 1500}, 1400, 20}, {narrow{mtu: 1450}, 1390, 30}}, 1390 - mcd.HeaderLen, 1450 - mcd.HeaderLen, 20},
		{"the first has shorter trains",
			[]trainer{{narrow{mtu: 1500}, 1200, 20}, {narrow{mtu: 1500}, 1400, 10}}, 1200 - mcd.HeaderLen, 1500 - mcd.HeaderLen, 10},
		{"one sends none", []trainer{{narrow{mtu: 1500}, 1400, 20}, {narrow{mtu: 1300}, 0, 0}},
			1300 - mcd.HeaderLen, 1300 - mcd.HeaderLen, 0},
		{"longer than any message", []trainer{{narrow{mtu: 1 << 17}, 1 << 17, 2}}, most, most, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			links := switched(t, len(c.links))
			for i := range links {
				l := &c.links[i]
				l.Link, links[i] = links[i], l
				if l.trainMTU == 0 {
					links[i] = &l.narrow
				}
			}
			e, err := mcd.Open(mcd.Config{}, links...)
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			if e.TrainPayload() != c.payload || e.MaxPayload() != c.long || e.TrainFrames() != c.frames {
				t.Errorf("messages of %d bytes, in trains of %d, %d of them; want %d, %d, %d",
					e.MaxPayload(), e.TrainPayload(), e.TrainFrames(), c.long, c.payload, c.frames)
			}
		})
	}
}
