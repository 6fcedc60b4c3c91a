package manager

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io/fs"
	"os"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/internal/claims"
)

// stateFormat is the version of the state file.
const stateFormat = 1

// state is what a manager keeps across restarts. What programs want is not in it: they say it again when they come back.
type state struct {
	Format int           `json:"format"`
	MAC    transport.MAC `json:"mac"`
	// VersionLimit is above every version that was ever given out: the next start goes on from there.
	VersionLimit uint64 `json:"version_limit"`
	setting
	// Past holds what was in force before, the latest last.
	Past []past `json:"past,omitempty"`
}

// setting is what the operator has set: a plan, and pairs over it.
type setting struct {
	Plan   *Plan     `json:"plan"`
	Pairs  []claimed `json:"pairs,omitempty"`
	ID     string    `json:"id,omitempty"` // of the group change that brought it, if one did
	Reason string    `json:"reason,omitempty"`
}

func (s *setting) planID() string {
	if s.Plan == nil {
		return ""
	}
	return PlanID(&s.Plan.Plan)
}

// past is a setting that was in force until Until.
type past struct {
	setting
	Until time.Time `json:"until"`
}

// sealed is how a state lies in its file: the sum tells a file that a disk or an editor has damaged from one that was written.
type sealed struct {
	State json.RawMessage `json:"state"`
	Sum   string          `json:"crc32c"`
}

func sum(b []byte) string {
	return fmt.Sprintf("%08x", crc32.Checksum(b, crc32.MakeTable(crc32.Castagnoli)))
}

// stateFile keeps a state on a disk. A write takes two steps, so that a change can be made durable before it is
// decided upon: stage writes the new state beside the old one, publish puts it in its place. Whatever ends the process or the
// machine in between, the file is the old state or the new one.
//
// A path of "" keeps nothing.
type stateFile struct {
	path string
	// step is called before each step of a write, and fails it by an error. Tests crash here.
	step func(name string) error
}

// next is where a staged state lies.
func (f *stateFile) next() string { return f.path + ".next" }

// load returns the state, or nil if there is none yet. The error is ErrCorrupt if there is one that cannot be understood.
// A state that was staged and not published is removed: it never was in force.
func (f *stateFile) load() (*state, error) {
	if f.path == "" {
		return nil, nil
	}
	if err := os.Remove(f.next()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("state: %w", err)
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
		return nil, fmt.Errorf("state %s: %w: %w (mend it, or start with --discard-state: it is kept aside then)", f.path, ErrCorrupt, err)
	}
	return s, nil
}

func parseState(b []byte) (*state, error) {
	var seal sealed
	if err := decodeStrict(b, &seal); err != nil {
		return nil, err
	}
	if got := sum(seal.State); got != seal.Sum {
		return nil, fmt.Errorf("its sum is %s, not %q", got, seal.Sum)
	}
	s := new(state)
	if err := decodeStrict(seal.State, s); err != nil {
		return nil, err
	}
	if s.Format != stateFormat {
		return nil, fmt.Errorf("format %d (this program knows %d)", s.Format, stateFormat)
	}
	book := claims.New(s.MAC)
	for _, set := range append([]past{{setting: s.setting}}, s.Past...) {
		if _, err := set.apply(book); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// apply makes the setting the book's, and returns the programs' claims that it cannot fulfil.
func (s *setting) apply(book *claims.Book) ([]claims.Dropped, error) {
	if s.Plan == nil {
		return book.Clear(), nil
	}
	dropped, err := book.SetPlan(&s.Plan.Plan)
	for _, p := range s.Pairs {
		if err == nil {
			_, _, err = book.Claim(claims.Operator, p.Since, []Change{p.Change})
		}
	}
	return dropped, err
}

// stage makes s durable beside the state in force.
func (f *stateFile) stage(s *state) (err error) {
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
		return fmt.Errorf("state: write %s: %w (the change was not made)", f.next(), err)
	}
	return nil
}

func (f *stateFile) write(b []byte) error {
	if err := f.before("create"); err != nil {
		return err
	}
	w, err := os.OpenFile(f.next(), os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	half := len(b) / 2 // in two, so that a test can crash in the middle
	_, err = w.Write(b[:half])
	if err == nil {
		err = f.before("write")
	}
	if err == nil {
		_, err = w.Write(b[half:])
	}
	if err == nil {
		err = f.before("sync")
	}
	if err == nil {
		err = w.Sync()
	}
	return errors.Join(err, w.Close())
}

// publish puts the staged state in the place of the old one. From then on a restart finds it; after a power failure,
// only once settle has returned, too.
func (f *stateFile) publish() error {
	if f.path == "" {
		return nil
	}
	err := f.before("rename")
	if err == nil {
		err = os.Rename(f.next(), f.path)
	}
	if err != nil {
		return fmt.Errorf("state: %w (the change was not made)", err)
	}
	return nil
}

// settle makes what was published survive a power failure.
func (f *stateFile) settle() error {
	if f.path == "" {
		return nil
	}
	err := f.before("settle")
	if err == nil {
		err = syncFolder(f.path)
	}
	if err != nil {
		return fmt.Errorf("state: %w (the change was made, but might not survive a power failure)", err)
	}
	return nil
}

// discard removes a staged state.
func (f *stateFile) discard() {
	if f.path != "" {
		_ = os.Remove(f.next()) // load removes it, too
	}
}

func (f *stateFile) before(step string) error {
	if f.step == nil {
		return nil
	}
	return f.step(step)
}

// setAside renames the state file, so that the manager begins anew, and returns where it is now.
func (f *stateFile) setAside(now time.Time) (string, error) {
	aside := f.path + now.UTC().Format(".aside-20060102T150405.000000000")
	if err := os.Rename(f.path, aside); err != nil {
		return "", fmt.Errorf("state: set aside: %w", err)
	}
	return aside, nil
}
