package mcd_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// local is a link that has a path of its own to stations of its host.
type local struct {
	transport.Link
	path transport.LocalPath
}

func (l local) LocalPath() transport.LocalPath { return l.path }

// A node's path to others of its host is the slowest of its links', and its place is that of its
// process.
func TestPlace(t *testing.T) {
	l := switched(t, 3)
	for _, c := range []struct {
		paths []transport.LocalPath
		want  transport.LocalPath
	}{
		{[]transport.LocalPath{transport.InProcess}, transport.InProcess},
		{[]transport.LocalPath{transport.InProcess, transport.ByKernel}, transport.ByKernel},
		{[]transport.LocalPath{transport.ByKernel, transport.InProcess}, transport.ByKernel},
		{[]transport.LocalPath{transport.InProcess, transport.InProcess, transport.InProcess}, transport.InProcess},
	} {
		var links []transport.Link
		for i, path := range c.paths {
			links = append(links, local{l[i], path})
		}
		here := mcd.Here(links...)
		if here.Path != c.want || here.IsZero() || here.Cores == 0 || here.Usable == 0 {
			t.Errorf("links by %v: %+v, want a place by %v", c.paths, here, c.want)
		}
		e, err := mcd.Open(mcd.Config{}, links...)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Place(); got != here {
			t.Errorf("the endpoint's place is %v, want %v", got, here)
		}
		_ = e.Close()
	}
}

// What is printed of an address, a place or an error says what it is.
func TestTexts(t *testing.T) {
	one, two := transport.MAC{2, 0, 0, 0, 0, 1}, transport.MAC{2, 0, 0, 0, 0, 2}
	a := mcd.Node{ID: 3, MACs: []transport.MAC{one, two}}
	b := mcd.Node{ID: 4, MACs: []transport.MAC{one}}
	silent := mcd.NoAnswerError{Path: mcd.Path{Node: 7}, Silent: 1500 * time.Nanosecond, Keys: errors.New("other keys")}
	for _, c := range []struct {
		of   any
		want string
	}{
		{mcd.Addr{Node: 3, Port: 7}, "3:7"},
		{mcd.To(mcd.Addr{Node: 3, Port: 7}), "3:7"},
		{mcd.ToGroup(5, 7), "group 5:7"},
		{mcd.ToAll(7), "all:7"},
		{mcd.Dest{}, "nobody"},
		{a, "{3 [02:00:00:00:00:01 02:00:00:00:00:02]}"},
		{mcd.Place{}, "unknown host"},
		{mcd.Place{Host: 0xab, Cores: 0xf0, Usable: 2, Path: transport.InProcess}, "host 00000000000000ab, 2 of 4 cores, by process"},
		{&mcd.ConflictError{A: a, B: mcd.Node{ID: 3, MACs: b.MACs}},
			"node 3: two of one number, with MAC 02:00:00:00:00:01,02:00:00:00:00:02 and MAC 02:00:00:00:00:01 (give each a number of its own)"},
		{&mcd.ConflictError{A: a, B: b},
			"nodes 3 and 4: one address for both: MAC 02:00:00:00:00:01,02:00:00:00:00:02 and MAC 02:00:00:00:00:01"},
		{&mcd.ShortBufferError{Size: 9, Len: 3}, "short buffer: message of 9 bytes, room for 3"},
		{&silent, fmt.Sprintf("%v: no answer for 2µs; other keys", silent.Path)},
	} {
		if got := fmt.Sprint(c.of); got != c.want {
			t.Errorf("%T: %q, want %q", c.of, got, c.want)
		}
	}
}

// What a silent path is an error of: a key mismatch only where one was seen.
func TestNoAnswerError_Is(t *testing.T) {
	other := errors.New("other")
	for _, e := range []*mcd.NoAnswerError{{}, {Keys: mcd.ErrKeyMismatch}} {
		for target, want := range map[error]bool{mcd.ErrNoAnswer: true, mcd.ErrKeyMismatch: e.Keys != nil, other: false} {
			if got := errors.Is(e, target); got != want {
				t.Errorf("keys %v: is %v: %t, want %t", e.Keys, target, got, want)
			}
		}
	}
}
