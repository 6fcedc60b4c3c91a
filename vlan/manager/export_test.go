package manager

import "errors"

// OnStep has f called before each step of a write of the state file; its error fails the step.
func (s *Server) OnStep(f func(step string) error) { s.file.step = f }

// Kill ends the manager as kill -9 does, as far as anybody outside can tell: connections end, nothing more is written, the lock is
// free. It may be called from a step.
func (s *Server) Kill() error {
	dead := errors.New("killed")
	s.file.step = func(string) error { return dead }
	s.mu.Lock()
	for conn := range s.sessions.open {
		_ = conn.Close()
	}
	s.mu.Unlock()
	_ = s.http.Close()
	s.unlock()
	return dead
}

// Steps are those of a write, in their order.
var Steps = []string{"create", "write", "sync", "rename", "settle"}
