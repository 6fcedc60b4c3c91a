package launch

import (
	"errors"
	"slices"

	"github.com/rawlane/rawlane/barrier"
	"github.com/rawlane/rawlane/barrier/offload"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/mcd"
)

// OpenBarriers opens the barriers of a node. If an algorithm is offload, node 0 has a unit on its
// interface, unless that is not possible: then the user is told why, and its process counts. The
// caller calls closeUnit when the service is closed.
func (c *ClusterFlags) OpenBarriers(
	ep *mcd.Endpoint, nic string, cfg barrier.Config, algorithms []string,
) (s *barrier.Service, closeUnit func(), err error) {
	name := schedule.Offload().String()
	if ep.Node() == 0 && slices.Contains(algorithms, name) {
		s, closeUnit, err = openWithUnit(ep, nic, cfg)
		if err == nil {
			return s, closeUnit, nil
		}
		c.note("%s: node 0 counts in its process: %v", name, err)
	}
	s, err = barrier.Open(ep, cfg)
	return s, func() {}, err
}

func openWithUnit(ep *mcd.Endpoint, nic string, cfg barrier.Config) (*barrier.Service, func(), error) {
	if nic == "" {
		return nil, nil, errors.New("its link has no interface")
	}
	u, err := offload.Open(nic)
	if err != nil {
		return nil, nil, err
	}
	closeUnit := func() { _ = u.Close() } // the process is about to end
	cfg.Unit = u
	s, err := barrier.Open(ep, cfg)
	if err != nil {
		closeUnit()
		return nil, nil, err
	}
	return s, closeUnit, nil
}
