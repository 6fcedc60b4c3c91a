package barrier_test

import (
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// joiner is a link that refuses to join multicast groups for a while.
type joiner struct {
	transport.Link
	refuses bool
	joined  int // of multicast groups
}

var errNoRoom = errors.New("no room in the filter")

func (j *joiner) Join(transport.MAC) error {
	if j.refuses {
		return errNoRoom
	}
	j.joined++
	return nil
}

func (j *joiner) Leave(transport.MAC) error {
	j.joined--
	return nil
}

// A group that could not be made counts for nothing: the next one of its members is the first, as
// it is on the other nodes.
func TestGroup_AFailedJoinCountsNoGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		links := map[mcd.NodeID]*joiner{}
		c := new(cluster).start(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				links[node] = &joiner{Link: l}
				return links[node]
			},
		})
		cfg := barrier.GroupConfig{Algorithm: schedule.Concurrent()}
		links[0].refuses = true
		for range 2 {
			if g, err := c.services[0].Group(cfg); !errors.Is(err, errNoRoom) {
				t.Fatalf("%v, %v", g, err)
			}
		}
		links[0].refuses = false
		stages(t, c.groups(t, cfg), 2, func(int, int) {})
	})
}

// A group is in its multicast group for as long as it exists; one that could not be made is not.
func TestGroup_LeavesItsMulticastGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var link *joiner // of node 0
		c := new(cluster).start(t, 2, mcdtest.Config{
			Endpoint: mcd.Config{Spin: -1},
			Wrap: func(node mcd.NodeID, _ int, l transport.Link) transport.Link {
				if node != 0 {
					return l
				}
				link = &joiner{Link: l}
				return link
			},
		})
		cfg := barrier.GroupConfig{Algorithm: schedule.Concurrent()}
		g := group(t, c.services[0], cfg)
		if link.joined != 1 {
			t.Errorf("with a group: in %d multicast groups", link.joined)
		}
		_ = g.Close()
		if link.joined != 0 {
			t.Errorf("its group is closed: in %d multicast groups", link.joined)
		}
		_ = c.services[0].Close()
		if _, err := c.services[0].Group(cfg); !errors.Is(err, barrier.ErrClosed) || link.joined != 0 {
			t.Errorf("%v: in %d multicast groups", err, link.joined)
		}
	})
}
