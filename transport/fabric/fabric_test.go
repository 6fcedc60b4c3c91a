package fabric

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/linktest"
)

func TestLink_OneSwitch(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
		links, err := Links(2)
		if err != nil {
			t.Fatal(err)
		}
		return links[0], links[1]
	})
}

func TestLink_TwoSwitchesAndATrunk(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
		f := newFabric(t, Config{Ageing: 1e9})
		left, right := f.AddSwitch("left"), f.AddSwitch("right")
		connect(t, left, right, Port{})
		return attach(t, left, Station{}), attach(t, right, Station{})
	})
}

func TestLink_Hub(t *testing.T) {
	linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
		hub := newFabric(t, Config{MTU: 9000, QueueFrames: 128}).AddHub("")
		return attach(t, hub, Station{}), attach(t, hub, Station{})
	})
}

func newFabric(t testing.TB, cfg Config) *Fabric {
	t.Helper()
	f, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func connect(t testing.TB, a, b Device, p Port) *Cable {
	t.Helper()
	c, err := a.plug().f.Connect(a, b, p)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func attach(t testing.TB, d Device, st Station) *Link {
	t.Helper()
	l, err := d.plug().f.Attach(d, st)
	if err != nil {
		t.Fatal(err)
	}
	return l
}
