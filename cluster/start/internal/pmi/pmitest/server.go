// Package pmitest is a server of PMI-1 for tests, in the dialects of Hydra and of Slurm.
package pmitest

import (
	"bufio"
	"fmt"
	"maps"
	"net"
	"sync"

	"github.com/rawlane/rawlane/cluster/start/internal/pmi"
)

// Server is what a launcher does for the processes of one job.
type Server struct {
	slurm bool // its dialect, else Hydra's

	mu      sync.Mutex
	store   map[string]string
	put     map[string]string // seen behind the next fence
	waiting []chan struct{}
	size    int
	final   int // processes that have ended as they should
}

// New makes a server that speaks as Slurm's does, or as Hydra.
func New(size int, slurm bool) *Server {
	return &Server{slurm: slurm, store: map[string]string{}, put: map[string]string{}, size: size}
}

// Serve answers one process until it closes its connection.
func (s *Server) Serve(c net.Conn, rank int) {
	defer func() { _ = c.Close() }()
	in := bufio.NewReader(c)
	for {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		fmt.Fprintf(c, "%s\n", s.answer(pmi.Parse(line), rank))
	}
}

func (s *Server) answer(f map[string]string, rank int) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if name := f["kvsname"]; name != "" && name != "job_7" {
		return "cmd=" + f["cmd"] + "_result rc=-1"
	}
	switch f["cmd"] {
	case "initack":
		return fmt.Sprintf("cmd=initack rc=0\ncmd=set size=%d\ncmd=set rank=%d\ncmd=set debug=0", s.size, rank)
	case "init":
		return "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0"
	case "get_my_kvsname":
		return "cmd=my_kvsname kvsname=job_7"
	case "put":
		s.put[f["key"]] = f["value"]
		return "cmd=put_result rc=0 msg=success"
	case "get":
		value, ok := s.store[f["key"]]
		switch {
		case ok && s.slurm:
			return "cmd=get_result rc=0 value=" + value
		case ok:
			return "cmd=get_result rc=0 msg=success value=" + value
		case s.slurm:
			return "cmd=get_result rc=1 value="
		}
		return "cmd=get_result rc=-1 msg=key_" + f["key"] + "_not_found value=unknown"
	case "barrier_in":
		s.fence()
		if s.slurm {
			return "cmd=barrier_out rc=0"
		}
		return "cmd=barrier_out"
	case "finalize":
		s.final++
		return "cmd=finalize_ack"
	}
	return "cmd=what"
}

// fence waits for all. The caller holds mu, which is free meanwhile.
func (s *Server) fence() {
	me := make(chan struct{})
	s.waiting = append(s.waiting, me)
	if len(s.waiting) == s.size {
		maps.Copy(s.store, s.put)
		for _, w := range s.waiting {
			close(w)
		}
		s.waiting = nil
	}
	s.mu.Unlock()
	<-me
	s.mu.Lock()
}

// Abort ends all waits: a process of the job has failed.
func (s *Server) Abort() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.waiting {
		close(w)
	}
	s.waiting, s.size = nil, 1
}

// Final returns how many processes have ended as they should.
func (s *Server) Final() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.final
}

// Puts returns how many keys were put.
func (s *Server) Puts() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.put)
}
