package server

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/filelock"
	"github.com/rawlane/rawlane/internal/outfile"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

// ErrCorrupt: the state file cannot be understood.
var ErrCorrupt = errors.New("corrupt state file")

// stateFormat is the version of the state file. Files from oldestFormat on are read: a format has
// no field less than the one before.
const stateFormat, oldestFormat = 4, 2

// ErrNewer: the state file is of a later version of this program, which has more in it.
var ErrNewer = errors.New("state file of a later version")

// state is what a manager keeps across restarts. What programs ask for is not in it: they ask again
// when they come back.
type state struct {
	Format int           `json:"format"`
	MAC    transport.MAC `json:"mac"`
	Start  uint64        `json:"start"` // the number of the manager's latest start: see api.Version
	runningConfig
	Past []past `json:"past,omitempty"` // what was in force before, the latest last
}

// runningConfig is what the operator has set: a plan, and pairs over it.
type runningConfig struct {
	Plan   *api.Plan       `json:"plan"`
	Pairs  []rib.Candidate `json:"pairs,omitempty"`
	ID     string          `json:"id,omitempty"` // of the group change that brought the plan, if one did
	Reason string          `json:"reason,omitempty"`
	From   string          `json:"from,omitempty"` // who has set it: see callerOf
	// Undo is what the group rollback that brought the plan has taken back, for its abort.
	Undo *runningConfig `json:"undo,omitempty"`
}

func (c *runningConfig) planID() string {
	if c.Plan == nil {
		return ""
	}
	return api.PlanID(&c.Plan.Plan)
}

// listed is the number of pairs that the plan lists, and what an abort goes back to.
func (c *runningConfig) listed() (n int) {
	if c.Plan != nil {
		n = len(c.Plan.Pairs)
	}
	if c.Undo != nil {
		n += c.Undo.listed()
	}
	return n
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

// maxPastPairs bounds the pairs that the plans of a history list, together, for the sake of its
// memory: large plans are kept for fewer changes than small ones.
const maxPastPairs = 1 << 20

// push puts a configuration in the place of the one in force, which becomes the latest past one.
func (s *state) push(config runningConfig) {
	s.Past = append(slices.Clip(s.Past), past{s.runningConfig, time.Now()}) // a copy: s is one of another's
	s.runningConfig = config
	s.trim()
}

// trim takes the oldest configurations out of a history that is too long. The latest one stays, for
// a rollback, and so does what an abort of the group change in force goes back to.
func (s *state) trim() {
	listed := 0
	for _, p := range s.Past {
		listed += p.listed()
	}
	back := s.beforeGroup()
	for k := 0; k < len(s.Past)-1 && (len(s.Past) > api.MaxHistory || listed > maxPastPairs); {
		if k == back {
			k++
			continue
		}
		listed -= s.Past[k].listed()
		s.Past = slices.Delete(s.Past, k, k+1)
		back--
	}
}

// beforeGroup returns the place of the configuration before the group change in force; -1: there is
// none.
func (s *state) beforeGroup() int {
	for k, p := range slices.Backward(s.Past) {
		if s.ID != "" && p.ID != s.ID {
			return k
		}
	}
	return -1
}

// pushOver is push with other pairs over the plan in force, which stays that of its group change.
func (s *state) pushOver(pairs []rib.Candidate, reason string) {
	s.push(runningConfig{Plan: s.Plan, ID: s.ID, Pairs: pairs, Reason: reason, Undo: s.Undo})
}

// pop goes back to the latest past configuration for which skip does not hold.
func (s *state) pop(skip func(*runningConfig) bool) error {
	for k := len(s.Past) - 1; k >= 0; k-- {
		if p := s.Past[k].runningConfig; !skip(&p) {
			s.Past, s.runningConfig = s.Past[:k], p
			return nil
		}
	}
	return fmt.Errorf("%w: it was the first", api.ErrNoHistory)
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
	staged stagedFile
	disk   disk
	// before is called before each step of a write, and fails it by an error. Tests crash here.
	before func(step string) error
	// failed is told how a write has ended: with an error or, once the state is in its place, nil.
	failed func(error)
}

// disk is how a state file is written. Tests record it: whether a file was synced shows in nothing
// but a power failure.
type disk struct {
	createTemp func(folder, pattern string) (stagedFile, error)
	syncFolder func(folder string) error
}

type stagedFile interface {
	Write([]byte) (int, error)
	Sync() error
	Close() error
	Name() string
}

var systemDisk = disk{
	createTemp: func(folder, pattern string) (stagedFile, error) { return os.CreateTemp(folder, pattern) },
	syncFolder: syncFolder,
}

const lockSuffix = ".lock"

// lockTimeout is how long a lock is waited for: a manager that was killed has it until the system
// has cleared it away, and systemd starts the next one at once.
const lockTimeout = time.Second

// lock holds the file for this process, until the lock is closed or the process ends.
func (f *stateFile) lock(log *slog.Logger) (*filelock.Lock, error) {
	if f.path == "" {
		return nil, nil
	}
	l, err := filelock.Take(f.path+lockSuffix, lockTimeout)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		log.Warn("nothing keeps another manager from the state file", "error", err)
	case errors.Is(err, filelock.ErrHeld):
		return nil, fmt.Errorf("state %s: another manager has it "+
			"(end that one, or give this one another --state)", f.path)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		return nil, fmt.Errorf("state %s: %w "+
			"(want a file in a folder that is there and that this user may write to: --state chooses)", f.path, err)
	case err != nil:
		return nil, fmt.Errorf("state: %w", err)
	}
	return l, nil
}

// unlock gives the file free. Where there is none, as of a start that has failed, nothing stays.
func (f *stateFile) unlock(l *filelock.Lock) {
	if _, err := os.Lstat(f.path); l != nil && errors.Is(err, fs.ErrNotExist) {
		_ = l.Remove()
		return
	}
	_ = l.Close() // nothing was written to it
}

// note passes the outcome of a write on.
func (f *stateFile) note(err error) error {
	if f.failed != nil && f.path != "" {
		f.failed(err)
	}
	return err
}

// step does a step of a write, if there is a file.
func (f *stateFile) step(name string, do func() error) error {
	if f.path == "" {
		return nil
	}
	if f.before != nil {
		if err := f.before(name); err != nil {
			return err
		}
	}
	return do()
}

// load returns the state, or nil if there is none yet. The error is ErrCorrupt if there is one that
// cannot be understood. It removes a state that was staged and not published, which never was in
// force.
func (f *stateFile) load() (*state, error) {
	if f.path == "" {
		return nil, nil
	}
	for _, name := range leftovers(f.path) { // of stage
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
	if errors.Is(err, ErrNewer) {
		return nil, fmt.Errorf("state %s: %w (start that version, or move the file away and begin anew)", f.path, err)
	}
	if err != nil {
		return nil, fmt.Errorf("state %s: %w: %w (mend it, or start with --discard-state: it is kept aside then)",
			f.path, ErrCorrupt, err)
	}
	return s, nil
}

// followLinks returns the file that a path leads to, which may not be there yet. A link that were
// replaced would be gone, and another manager might have the file by its other name. What is no
// regular file is an error: a device would be replaced for all programs, and a FIFO be waited for.
func followLinks(path string) (string, error) {
	if path == "" {
		return "", nil
	}
	if i, err := os.Stat(path); err == nil && !i.Mode().IsRegular() {
		return "", fmt.Errorf("state %s: its type is %v (want a regular file: --state chooses)", path, i.Mode().Type())
	}
	file, err := outfile.Follow(path)
	if err != nil {
		return "", fmt.Errorf("state %w (want a regular file: --state chooses)", err)
	}
	return file, nil
}

// stagedName begins the names of files that are written to be put in the place of path. No other
// path in the folder has the same, as state1 and state10 would without what follows them.
func stagedName(path string) string { return "." + filepath.Base(path) + ".new-" }

// leftovers returns the files beside path that a manager which was killed has left.
func leftovers(path string) (names []string) {
	entries, _ := os.ReadDir(filepath.Dir(path)) // none, where nothing was written yet
	for _, e := range entries {
		number, ok := strings.CutPrefix(e.Name(), stagedName(path))
		if ok && number != "" && strings.Trim(number, "0123456789") == "" {
			names = append(names, filepath.Join(filepath.Dir(path), e.Name()))
		}
	}
	return names
}

func parseState(b []byte) (*state, error) {
	var seal sealed
	if err := api.Decode(b, &seal); err != nil {
		return nil, err
	}
	if got := sum(seal.State); got != seal.Sum {
		return nil, fmt.Errorf("its sum is %s, not %q", got, seal.Sum)
	}
	var version struct{ Format int }
	if err := json.Unmarshal(seal.State, &version); err != nil {
		return nil, err
	}
	switch {
	case version.Format > stateFormat:
		return nil, fmt.Errorf("%w: format %d (this program knows up to %d)", ErrNewer, version.Format, stateFormat)
	case version.Format < oldestFormat:
		return nil, fmt.Errorf("format %d (this program knows %d to %d)", version.Format, oldestFormat, stateFormat)
	}
	s := new(state)
	if err := api.Decode(seal.State, s); err != nil {
		return nil, err
	}
	s.Format = stateFormat
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
	err := f.stage(s)
	if err == nil {
		err = f.publish()
	}
	if err == nil {
		err = f.fsync()
	}
	return err
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
		return f.note(fmt.Errorf("state: write beside %s: %w", f.path, err))
	}
	return nil
}

func (f *stateFile) write(b []byte) error {
	half := len(b) / 2 // in two, so that a test can crash in the middle
	err := f.step("create", func() error {
		staged, err := f.disk.createTemp(filepath.Dir(f.path), stagedName(f.path)+"*")
		if err != nil {
			return err
		}
		f.staged = staged
		_, err = staged.Write(b[:half])
		return err
	})
	if err == nil {
		err = f.step("write", func() error { _, err := f.staged.Write(b[half:]); return err })
	}
	if err == nil {
		err = f.step("sync", f.staged.Sync)
	}
	return err
}

// publish puts the staged state in the place of the old one, or with an error discards it. A
// restart finds it from then on.
func (f *stateFile) publish() error {
	err := f.step("rename", func() error {
		if err := f.staged.Close(); err != nil {
			return err
		}
		return os.Rename(f.staged.Name(), f.path)
	})
	if err != nil {
		f.discard()
		return f.note(fmt.Errorf("state: %w", err))
	}
	f.staged = nil
	return nil
}

// fsync makes what was published survive a power failure.
func (f *stateFile) fsync() error {
	if err := f.step("fsync", func() error { return f.disk.syncFolder(filepath.Dir(f.path)) }); err != nil {
		return f.note(fmt.Errorf("state: %w (the change was made, but might not survive a power failure)", err))
	}
	return f.note(nil)
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
		_ = errors.Join(f.staged.Close(), os.Remove(f.staged.Name())) // load removes it, too
		f.staged = nil
	}
}

// setAside renames the state file, so that the manager begins anew, and returns its new name.
func (f *stateFile) setAside(now time.Time) (string, error) {
	aside := f.path + now.UTC().Format(".aside-20060102T150405.000000000")
	if err := os.Rename(f.path, aside); err != nil {
		return "", fmt.Errorf("state: set aside: %w", err)
	}
	return aside, nil
}
