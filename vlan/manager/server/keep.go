package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

// overrideFile keeps a failover's overrides beside the state file, so that a manager that was
// restarted does not send by paths that are down until its failover finds out again. It is written
// behind the changes, and not synced: after a power failure the node's programs begin anew, too.
type overrideFile struct {
	path    string        // "": they are not kept
	changed chan struct{} // of capacity 1: holds a token if the file is behind
	end     chan struct{} // closed by Server.Close
}

// keepAgain is the pause after a write that has failed, as on a full disk, before the next one.
const keepAgain = time.Minute

const overridesSuffix = ".overrides"

// keptOverride is an override in the file.
type keptOverride struct {
	api.Change
	Reason string `json:"reason,omitempty"`
}

func newOverrideFile(cfg *Config) overrideFile {
	f := overrideFile{changed: make(chan struct{}, 1), end: make(chan struct{})}
	if cfg.State != "" && cfg.KeepOverrides {
		f.path = cfg.State + overridesSuffix
	}
	return f
}

// keepOverrides has the file written anew.
func (s *Server) keepOverrides() {
	select {
	case s.overrides.changed <- struct{}{}:
	default: // it is going to be
	}
}

// keepLoop writes the file when overrides have changed, and again after a while if that has failed,
// until Close, and then once more if it is behind.
func (s *Server) keepLoop() {
	var again <-chan time.Time // nil: the latest write has not failed
	for isOver := false; !isOver; {
		select {
		case <-s.overrides.changed:
		case <-again:
		case <-s.overrides.end:
			isOver = true
			select {
			case <-s.overrides.changed:
			default:
				if again == nil {
					return
				}
			}
		}
		s.mu.Lock()
		kept := []keptOverride{}
		for _, c := range s.rib.Of(rib.Failover) {
			kept = append(kept, keptOverride{c.Change, c.Reason})
		}
		s.mu.Unlock()
		again = nil
		if err := s.overrides.write(kept); err != nil {
			s.log.Error("a failover's overrides are not kept for a restart", "err", err)
			again = time.After(keepAgain)
		}
	}
}

func (f *overrideFile) write(kept []keptOverride) error {
	b, err := json.Marshal(kept)
	if err != nil {
		return err
	}
	t, err := os.CreateTemp(filepath.Dir(f.path), stagedName(f.path)+"*")
	if err != nil {
		return err
	}
	_, err = t.Write(b)
	if err = errors.Join(err, t.Close()); err == nil {
		err = os.Rename(t.Name(), f.path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(t.Name()))
	}
	return nil
}

// read returns what is kept; nothing if there is no file.
func (f *overrideFile) read() (kept []keptOverride, err error) {
	for _, name := range leftovers(f.path) {
		_ = os.Remove(name) // of a manager that was killed; nothing depends on it
	}
	b, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &kept)
	}
	return kept, err
}

// restoreOverrides takes up the overrides that an earlier start of the manager has left, as far as
// the plan can fulfil them.
func (s *Server) restoreOverrides() {
	if s.overrides.path == "" {
		if s.cfg.State != "" {
			_ = os.Remove(s.cfg.State + overridesSuffix) // it would be too old for a later one
		}
		return
	}
	kept, err := s.overrides.read()
	if err != nil {
		s.log.Warn("the overrides of before the restart could not be read; the failover finds out again",
			"file", s.overrides.path, "err", err)
	}
	taken := 0
	for _, k := range kept {
		if checkText("reason", k.Reason, api.MaxReason) != nil {
			continue
		}
		if _, err := s.rib.Override(k.Reason, []api.Change{k.Change}); err == nil {
			taken++
		}
	}
	if taken > 0 {
		s.log.Warn(fmt.Sprintf("%d pairs stay off their path, which was down before the restart", taken))
	}
}
