package server

import (
	"cmp"
	"net/http"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// ShowFailover has the server tell, from now on, what f returns: which paths a failover watches, or
// why it cannot. nil: there is no failover. f is called without locks of the server's.
func (s *Server) ShowFailover(f func() api.Failover) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.failover = f
}

// paths returns what the failover watches, with the nodes' names. ok is false if there is none.
func (s *Server) paths() (f api.Failover, ok bool) {
	s.mu.Lock()
	ask := s.failover
	names := s.names()
	s.mu.Unlock()
	if ask != nil {
		f, ok = ask(), true
	}
	f.Schema = api.Schema
	f.Paths = append([]api.Path{}, f.Paths...)
	for i := range f.Paths {
		f.Paths[i].Name = names[f.Paths[i].Peer]
	}
	return f, ok
}

// names returns the names of the plan's nodes. The caller holds mu.
func (s *Server) names() map[transport.MAC]string {
	names := make(map[transport.MAC]string)
	if p := s.rib.Plan(); p != nil {
		for _, n := range p.Nodes {
			names[n.MAC] = n.Name
		}
	}
	return names
}

func (s *Server) getPaths(*http.Request, *struct{}) (any, error) {
	f, _ := s.paths()
	return f, nil
}

// summary is what the paths come to.
type summary struct {
	down, restoring int      // paths in these states
	unreachable     []string // nodes to which all paths are down, by name or address
	missed          []string // those to which the path by the default VID is, and another one is not
}

func summaryOf(paths []api.Path, byDefault transport.VID) (s summary) {
	for i := 0; i < len(paths); {
		peer, anyUp, missed := paths[i], false, false
		for ; i < len(paths) && paths[i].Peer == peer.Peer; i++ {
			switch p := paths[i]; {
			case p.State == api.PathDown:
				s.down++
				missed = missed || p.VID == byDefault
			default:
				anyUp = true
				if p.State == api.PathWaitToRestore {
					s.restoring++
				}
			}
		}
		name := cmp.Or(peer.Name, peer.Peer.String())
		switch {
		case !anyUp:
			s.unreachable = append(s.unreachable, name)
		case missed:
			s.missed = append(s.missed, name)
		}
	}
	return s
}
