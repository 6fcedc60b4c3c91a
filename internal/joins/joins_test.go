package joins_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/rawlane/rawlane/internal/joins"
	"github.com/rawlane/rawlane/transport"
)

var group = transport.MAC{3, 0, 0, 0, 0, 1}

// Only the first join and the last leave change what the NIC passes on.
func TestSet_IsCounted(t *testing.T) {
	var s joins.Set
	var changes []bool
	change := func(member bool) error { changes = append(changes, member); return nil }
	for _, c := range []struct {
		do   func(transport.MAC, func(bool) error) error
		has  bool
		want []bool
	}{
		{s.Join, true, []bool{true}},
		{s.Join, true, []bool{true}},
		{s.Leave, true, []bool{true}},
		{s.Leave, false, []bool{true, false}},
		{s.Join, true, []bool{true, false, true}},
	} {
		if err := c.do(group, change); err != nil {
			t.Fatal(err)
		}
		if s.Has(group) != c.has || !slices.Equal(changes, c.want) {
			t.Errorf("member %v after %v, want %v after %v", s.Has(group), changes, c.has, c.want)
		}
	}
}

func TestSet_Faults(t *testing.T) {
	var s joins.Set
	if s.Has(group) || !s.Has(transport.Broadcast) {
		t.Error("an empty set has broadcasts, and no group")
	}
	if s.Leave(group, nil) == nil || s.Has(group) {
		t.Error("a group was left that nobody had joined")
	}
	if s.Join(transport.MAC{2}, nil) == nil {
		t.Error("a station's address was joined")
	}
	refused := errors.New("refused")
	if err := s.Join(group, func(bool) error { return refused }); !errors.Is(err, refused) || s.Has(group) {
		t.Errorf("%v, want what change returned, and no member", err)
	}
}

func TestSet_IsClosed(t *testing.T) {
	var s joins.Set
	if err := s.Join(group, nil); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := s.Join(group, nil); !errors.Is(err, transport.ErrClosed) {
		t.Errorf("Join: %v", err)
	}
	if err := s.Leave(group, nil); !errors.Is(err, transport.ErrClosed) || !s.Has(group) {
		t.Errorf("Leave: %v, member %v", err, s.Has(group))
	}
}
