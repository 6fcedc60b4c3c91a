package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

// ErrCorrupt: the state file cannot be understood.
var ErrCorrupt = errors.New("corrupt state file")

// stateFormat is the version of the state file.
const stateFormat = 2

// state is what a manager keeps across restarts. What programs ask for is not in it: they ask again
// when they come back.
type state struct {
	Format int           `json:"format"`
	MAC    transport.MAC `json:"mac"`
	Start  uint64        `json:"start"` // the number of the manager's latest start: see api.Version
	runningConfig
	// Undo is what the group rollback in force has taken back, for its abort.
	Undo *runningConfig `json:"undo,omitempty"`
	Past []past         `json:"past,omitempty"` // what was in force before, the latest last
}

// runningConfig is what the operator has set: a plan, and pairs over it.
type runningConfig struct {
	Plan   *api.Plan       `json:"plan"`
	Pairs  []rib.Candidate `json:"pairs,omitempty"`
	ID     string          `json:"id,omitempty"` // of the group change that brought the plan, if one did
	Reason string          `json:"reason,omitempty"`
}

func (c *runningConfig) planID() string {
	if c.Plan == nil {
		return ""
	}
	return api.PlanID(&c.Plan.Plan)
}

// activate makes the configuration the RIB's, and returns the programs' candidates that it cannot
// fulfil.
func (c *runningConfig) activate(r *rib.RIB) ([]rib.Candidate, error) {
	if c.Plan == nil {
		return r.Clear(), nil
	}
	dropped, err := r.SetPlan(&c.Plan.Plan)
	for _, p := range c.Pairs {
		if err == nil {
			_, _, err = r.Add(rib.Operator, p.Since, []api.Change{p.Change})
		}
	}
	return dropped, err
}

// past is a configuration that was in force until Until.
type past struct {
	runningConfig
	Until time.Time `json:"until"`
}

// sealed is the form of a state in its file: the sum tells a file that a disk or an editor has
// damaged from an intact one.
type sealed struct {
	State json.RawMessage `json:"state"`
	Sum   string          `json:"crc32c"`
}

func sum(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// stateFile keeps a state on a disk. A write takes three steps, so that a change can be on the disk
// before it is decided upon: stage writes the new state beside the old one, publish puts it in its
// place, and fsync makes that survive a power failure. Whatever ends the process or the machine in
// between, the file is the old state or the new one.
//
// A path of "" keeps nothing.
type stateFile struct {
	path   string
	staged *pendingFile
	// step is called before each step of a write, and fails it by an error. Tests crash here.
	step func(name string) error
}

// load returns the state, or nil if there is none yet. The error is ErrCorrupt if there is one that
// cannot be understood. It removes a state that was staged and not published, which never was in
// force.
func (f *stateFile) load() (*state, error) {
	if f.path == "" {
		return nil, nil
	}
	folder, base := filepath.Split(f.path)
	leftovers, _ := filepath.Glob(folder + "." + base + "[0-9]*") // renameio's names
	for _, name := range leftovers {
		if err := os.Remove(name); err != nil {
			return nil, fmt.Errorf("state: %w", err)
		}
	}
	b, err := os.ReadFile(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("state: %w", err)
	}
	s, err := parseState(b)
	if err != nil {
		return nil, fmt.Errorf("state %s: %w: %w (mend it, or start with --discard-state: it is kept aside then)",
			f.path, ErrCorrupt, err)
	}
	return s, nil
}

func parseState(b []byte) (*state, error) {
	var seal sealed
	if err := api.Decode(b, &seal); err != nil {
		return nil, err
	}
	if got := sum(seal.State); got != seal.Sum {
		return nil, fmt.Errorf("its sum is %s, not %q", got, seal.Sum)
	}
	s := new(state)
	if err := api.Decode(seal.State, s); err != nil {
		return nil, err
	}
	if s.Format != stateFormat {
		return nil, fmt.Errorf("format %d (this program knows %d)", s.Format, stateFormat)
	}
	r := rib.New(s.MAC)
	for _, config := range append([]past{{runningConfig: s.runningConfig}}, s.Past...) {
		if _, err := config.activate(r); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// save writes a state in all steps.
func (f *stateFile) save(s *state) error {
	if err := f.stage(s); err != nil {
		return err
	}
	if err := f.publish(); err != nil {
		f.discard()
		return err
	}
	return f.fsync()
}

// stage writes s beside the state in force, and syncs it.
func (f *stateFile) stage(s *state) error {
	if f.path == "" {
		return nil
	}
	body, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	b, err := json.Marshal(sealed{body, sum(body)})
	if err != nil {
		return fmt.Errorf("state: %w", err)
	}
	if err := f.write(b); err != nil {
		f.discard()
		return fmt.Errorf("state: write beside %s: %w (the change was not made)", f.path, err)
	}
	return nil
}

func (f *stateFile) write(b []byte) error {
	half := len(b) / 2 // in two, so that a test can crash in the middle
	for _, step := range []struct {
		name string
		do   func() error
	}{
		{"create", func() (err error) {
			f.staged, err = newPendingFile(f.path)
			return err
		}},
		{"", func() error { _, err := f.staged.Write(b[:half]); return err }},
		{"write", func() error { _, err := f.staged.Write(b[half:]); return err }},
		{"sync", func() error { return f.staged.Sync() }},
	} {
		if err := f.before(step.name); err != nil {
			return err
		}
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

// publish puts the staged state in the place of the old one. A restart finds it from then on.
func (f *stateFile) publish() error {
	if f.path == "" {
		return nil
	}
	err := f.before("rename")
	if err == nil {
		err = f.staged.CloseAtomicallyReplace()
	}
	if err != nil {
		return fmt.Errorf("state: %w (the change was not made)", err)
	}
	f.staged = nil
	return nil
}

// fsync makes what was published survive a power failure.
func (f *stateFile) fsync() error {
	if f.path == "" {
		return nil
	}
	err := f.before("fsync")
	if err == nil {
		err = syncFolder(filepath.Dir(f.path))
	}
	if err != nil {
		return fmt.Errorf("state: %w (the change was made, but might not survive a power failure)", err)
	}
	return nil
}

// syncFolder makes the renaming of a file in a folder durable.
func syncFolder(folder string) error {
	d, err := os.Open(folder)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// discard removes a staged state.
func (f *stateFile) discard() {
	if f.staged != nil {
		_ = f.staged.Cleanup() // load removes it, too
		f.staged = nil
	}
}

func (f *stateFile) before(step string) error {
	if f.step == nil || step == "" {
		return nil
	}
	return f.step(step)
}

// setAside renames the state file, so that the manager begins anew, and returns its new name.
func (f *stateFile) setAside(now time.Time) (string, error) {
	aside := f.path + now.UTC().Format(".aside-20060102T150405.000000000")
	if err := os.Rename(f.path, aside); err != nil {
		return "", fmt.Errorf("state: set aside: %w", err)
	}
	return aside, nil
}
