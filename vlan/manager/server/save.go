package server

import (
	"os"
	"time"
)

// saveLater has the state in force saved again after a while.
func (s *Server) saveLater() {
	select {
	case s.unsaved <- struct{}{}:
	default: // it is going to be
	}
}

// saveLoop saves the state in force again, a while after a write has failed, until Close: so a
// manager on whose disk there is room again is well, though nobody changes anything.
func (s *Server) saveLoop() {
	for {
		select {
		case <-s.unsaved:
		case <-s.overrides.end:
			return
		}
		select {
		case <-time.After(keepAgain):
			s.saveAgain()
		case <-s.overrides.end:
			return
		}
	}
}

// saveAgain saves the state in force, if the latest write has failed. A prepared change is in the
// way: it has its place beside the state.
func (s *Server) saveAgain() {
	s.change.Lock()
	defer s.change.Unlock()
	s.mu.Lock()
	isWell := s.diskError == nil
	s.mu.Unlock()
	if isWell {
		return
	}
	if s.pending() != nil {
		s.saveLater()
		return
	}
	err := s.file.stage(&s.state)
	if err == nil {
		err = s.file.publish()
	}
	if err == nil {
		s.mu.Lock()
		s.failedThen = s.writesFailed
		s.mu.Unlock()
		err = s.file.fsync()
	}
	if err != nil {
		return // noteDisk has heard of it
	}
	s.log.Info("the state can be written again", "file", s.cfg.State)
}

// Starts whose number could not be saved are counted by the length of the lock file: it has no
// content, and a length alone takes no room on a full disk.

// unsavedStarts returns their number since the state was saved.
func (f *stateFile) unsavedStarts() uint64 {
	if i, err := os.Stat(f.path + lockSuffix); f.path != "" && err == nil {
		return uint64(i.Size())
	}
	return 0
}

// countStart counts one more.
func (f *stateFile) countStart() error {
	return os.Truncate(f.path+lockSuffix, int64(f.unsavedStarts())+1)
}

// savedStart forgets them: the number of a later one is in the file.
func (f *stateFile) savedStart() {
	if f.unsavedStarts() > 0 {
		_ = os.Truncate(f.path+lockSuffix, 0) // else the next start leaves some numbers out
	}
}
