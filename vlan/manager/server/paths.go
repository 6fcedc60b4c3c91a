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

// summary counts the paths that are down, and returns the nodes to which all are, by name or
// address.
func summary(paths []api.Path) (down int, unreachable []string) {
	for i := 0; i < len(paths); {
		peer, anyUp := paths[i], false
		for ; i < len(paths) && paths[i].Peer == peer.Peer; i++ {
			if paths[i].State == api.PathDown {
				down++
			} else {
				anyUp = true
			}
		}
		if !anyUp {
			unreachable = append(unreachable, cmp.Or(peer.Name, peer.Peer.String()))
		}
	}
	return down, unreachable
}
