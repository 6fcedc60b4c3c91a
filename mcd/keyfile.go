package mcd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
)

// keyFileInterval is how often the endpoint looks whether its key file has changed.
const keyFileInterval = time.Second

// keyFile is the file that an endpoint's keys came from.
type keyFile struct {
	path    string                                 // "": they came from the program
	stat    func(path string) (os.FileInfo, error) // os.Stat
	seen    os.FileInfo
	inPlace bool // the last look found the same file: a change of that may be half written
	pending bool // there was such a change since it was read
	unread  bool // the last attempt to read it has failed
	gone    int  // looks in a row that have not found it
}

// changed reports whether the file is another one than at the last look.
func (f *keyFile) changed() bool {
	now, err := f.stat(f.path)
	if err != nil {
		f.gone++
		return false // it is being replaced, or is gone: the keys stay
	}
	f.gone = 0
	old := f.seen
	f.seen = now
	f.inPlace = old != nil && os.SameFile(old, now)
	return !f.inPlace || now.Size() != old.Size() || !now.ModTime().Equal(old.ModTime()) ||
		now.Mode() != old.Mode() || !ctime(now).Equal(ctime(old))
}

// ring returns the keys that a configuration says, or nil for none. It looks at the key file before
// it reads it: what is written in between is a change.
func (c *Config) ring(file *keyFile) (*keyring.Ring, error) {
	switch {
	case c.Keys != nil && c.KeyFile != "":
		return nil, errors.New("Config.Keys and Config.KeyFile are both set (want one)")
	case c.KeyFile != "":
		path, err := filepath.Abs(c.KeyFile) // the program may go to another folder
		if err != nil {
			return nil, fmt.Errorf("Config.KeyFile: %w", err)
		}
		file.path, file.stat = path, os.Stat
		file.changed()
		return keyring.ReadFile(path)
	case c.Keys != nil:
		if err := c.Keys.Validate(); err != nil {
			return nil, fmt.Errorf("Config.Keys: %w", err)
		}
	}
	return c.Keys, nil
}

// ReloadKeys reads the key file again, which happens by itself about once a second when it has
// changed. If there is an error, the keys are as before: those of keyring.ReadFile, ErrNoKeys if
// the endpoint has no key file, ErrClosed. Receive functions must not call it.
func (e *Endpoint) ReloadKeys() error {
	if e.auth == nil || e.auth.file.path == "" {
		return ErrNoKeys
	}
	e.auth.mu.Lock()
	defer e.auth.mu.Unlock()
	e.auth.file.changed()
	err := e.reload()
	if err != nil {
		e.auth.failures.Add(1)
	}
	return err
}

// reload reads the key file. The caller holds auth.mu, and counts failures.
func (e *Endpoint) reload() error {
	ring, err := keyring.ReadFile(e.auth.file.path)
	if err == nil {
		err = e.SetKeys(ring)
	}
	e.auth.file.unread = err != nil
	if err != nil {
		return fmt.Errorf("reload keys: %w (the keys are as they were)", err)
	}
	e.auth.reloads.Add(1)
	return nil
}

// lookAtKeyFile has a goroutine look at the key file, unless one looks still. A file system that
// hangs, as one of another host does, holds up that one alone: not the authLoop, nor Close, which
// does not wait for it.
func (e *Endpoint) lookAtKeyFile() {
	if a := e.auth; a.looking.CompareAndSwap(false, true) {
		go func() { // ends when the file system has answered
			defer a.looking.Store(false)
			e.checkKeyFile()
		}()
	}
}

// checkKeyFile reads the key file if it has changed, or could not be read at the last look: that
// may have had another reason than what is in it. One that is written in place is read at the
// first look that finds it unchanged, as half of it may be a good one; one that is gone, when it is
// there again. A failure counts once, also that it is gone.
func (e *Endpoint) checkKeyFile() {
	a := e.auth
	a.mu.Lock()
	defer a.mu.Unlock()
	changed := a.file.changed()
	if a.file.gone > 0 {
		if a.file.gone == 2 {
			a.failures.Add(1)
		}
		return
	}
	if changed && a.file.inPlace {
		a.file.pending = true
		return
	}
	changed = changed || a.file.pending
	a.file.pending = false
	if (changed || a.file.unread) && e.reload() != nil && changed {
		a.failures.Add(1)
	}
}

// KeyMismatch says that another node uses other keys than this one, or that one of the two has
// none: an ErrKeyMismatch that names the sender of the last such frame. It is nil if no such frame
// has come, or its sender has sent others since. Anybody can send such frames: it is a hint for
// messages.
func (e *Endpoint) KeyMismatch() error {
	const cure = "give all nodes the same key file"
	from, version, ok := e.Foreign()
	switch {
	case e.auth == nil && ok && version == AuthWireVersion:
		return fmt.Errorf("%v has a key, and this node has none (%s): %w", from, cure, ErrKeyMismatch)
	case e.auth == nil:
		return nil
	case ok && version == WireVersion:
		return fmt.Errorf("%v has no key, and this node has one (%s): %w", from, cure, ErrKeyMismatch)
	}
	if other, ok := unpackMAC(e.auth.otherKey.Load()); ok {
		return fmt.Errorf("%v has another key than this node, or its frames were changed (%s): %w",
			other, cure, ErrKeyMismatch)
	}
	return nil
}

// packMAC packs an address into a word that is not 0.
func packMAC(m transport.MAC) uint64 {
	v := uint64(1) << 63
	for i := range m {
		v |= uint64(m[i]) << (8 * i)
	}
	return v
}

// unpackMAC undoes packMAC. ok is false of 0.
func unpackMAC(v uint64) (m transport.MAC, ok bool) {
	for i := range m {
		m[i] = byte(v >> (8 * i))
	}
	return m, v != 0
}
