package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// goldens are at least one message of each kind.
var goldens = []struct {
	name string
	m    Message
	wire string // in hex; blanks are for the reader
}{
	{"notify", Message{Kind: Notify, Number: 7, Label: 3, Identity: Identity{0x0102030405060708, 5}, Generation: 9,
		Algorithm: 0xa1a2a3a4, Incarnation: 0xb1b2b3b4},
		"21 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
	{"nack, last generation and label", Message{Kind: Nack, Number: 255, Label: 255, Generation: 1<<32 - 1},
		"22 ff ff 00 0000000000000000 00000000 ffffffff 00000000 00000000"},
	{"not yet, not entered", Message{Kind: NotYet, Generation: 2, Own: 1},
		"23 00 00 00 0000000000000000 00000000 00000002 00000000 00000000 00000001"},
	{"not yet, entered", Message{Kind: NotYet, Entered: true, Generation: 2, Own: 2},
		"23 00 00 01 0000000000000000 00000000 00000002 00000000 00000000 00000002"},
	{"fail: silent 1 and 258", Message{Kind: Fail, Generation: 1, Failure: &Failure{Reason: Silent, Ranks: []int{1, 258}}},
		"24 00 00 00 0000000000000000 00000000 00000001 00000000 00000000 01 00 0002 0001 0102"},
	{"fail: 16 named and 3 more", Message{Kind: Fail, Failure: &Failure{Reason: Left, Ranks: upTo(16), Others: 3}},
		"24 00 00 00 0000000000000000 00000000 00000000 00000000 00000000 02 00 0013 " +
			"0000 0001 0002 0003 0004 0005 0006 0007 0008 0009 000a 000b 000c 000d 000e 000f"},
	{"bye, nothing completed", Message{Kind: Bye},
		"25 00 00 00 0000000000000000 00000000 00000000 00000000 00000000 0000"},
	{"bye, two numbers completed", Message{Kind: Bye, Done: []Done{{0, 3}, {255, 4}}},
		"25 00 00 00 0000000000000000 00000000 00000000 00000000 00000000 0002 00 00000003 ff 00000004"},
	{"bye ack", Message{Kind: ByeAck}, "26 00 00 00 0000000000000000 00000000 00000000 00000000 00000000"},
	{"status request", Message{Kind: StatusRequest, Generation: 4},
		"27 00 00 00 0000000000000000 00000000 00000004 00000000 00000000"},
	{"status reply", Message{Kind: StatusReply, Generation: 4},
		"28 00 00 00 0000000000000000 00000000 00000004 00000000 00000000"},
	{"status reply, entered", Message{Kind: StatusReply, Entered: true, Generation: 4},
		"28 00 00 01 0000000000000000 00000000 00000004 00000000 00000000"},
	{"no such group", Message{Kind: NoSuchGroup, Identity: Identity{1, 2}},
		"29 00 00 00 0000000000000001 00000002 00000000 00000000 00000000 00000000"},
	{"no such group, but epoch 7", Message{Kind: NoSuchGroup, Identity: Identity{1, 2}, Lowest: 7},
		"29 00 00 00 0000000000000001 00000002 00000000 00000000 00000000 00000007"},
}

func upTo(n int) (ranks []int) {
	for r := range n {
		ranks = append(ranks, r)
	}
	return ranks
}

func unhex(t testing.TB, s string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(s, " ", ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestMessage_Golden(t *testing.T) {
	seen := map[Kind]bool{}
	for _, g := range goldens {
		want := unhex(t, g.wire)
		if got := g.m.Append(nil); !bytes.Equal(got, want) {
			t.Errorf("%s: Append gives %x, want %x", g.name, got, want)
		}
		var m Message
		if err := Parse(want, &m); err != nil || !reflect.DeepEqual(m, g.m) {
			t.Errorf("%s: Parse gives %+v, %v, want %+v", g.name, m, err, g.m)
		}
		if err := Parse(append(want, make([]byte, 60-len(want)%60)...), &m); err != nil || !reflect.DeepEqual(m, g.m) {
			t.Errorf("%s: the padding of a short frame changes it: %+v, %v", g.name, m, err)
		}
		seen[g.m.Kind] = true
	}
	for k := Notify; k < kinds; k++ {
		if !seen[k] {
			t.Errorf("no golden bytes of %v", k)
		}
	}
}

// A failure names the first members and counts the others, through any number of hops.
func TestMessage_ManyFailed(t *testing.T) {
	m := Message{Kind: Fail, Failure: newFailure(Silent, upTo(40)...)}
	for hop := range 3 {
		var got Message
		if err := Parse(m.Append(nil), &got); err != nil {
			t.Fatal(err)
		}
		if len(got.Failure.Ranks) != maxNamed || got.Failure.Others != 40-maxNamed {
			t.Errorf("hop %d: %v", hop, got.Failure)
		}
		m = got
	}
}

func TestParse_Malformed(t *testing.T) {
	for _, c := range []struct{ name, wire string }{
		{"nothing", ""},
		{"version 1", "11 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
		{"version 3", "31 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
		{"kind 0", "20 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
		{"kind 10", "2a 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
		{"fail, no reason", "24 00 00 00 0000000000000000 00000001 00000001 00000000 00000000 00 00 0001 0001"},
		{"fail, unknown reason", "24 00 00 00 0000000000000000 00000001 00000001 00000000 00000000 05 00 0001 0001"},
		{"fail, of no member", "24 00 00 00 0000000000000000 00000001 00000001 00000000 00000000 01 00 0000"},
		{"bye, 257 numbers", "25 00 00 00 0000000000000000 00000001 00000001 00000000 00000000 0101" +
			strings.Repeat("00", 257*doneLen)},
	} {
		if err := Parse(unhex(t, c.wire), new(Message)); !errors.Is(err, ErrMalformed) {
			t.Errorf("%s: %v, want ErrMalformed", c.name, err)
		}
	}
	for _, g := range goldens {
		b := unhex(t, g.wire)
		for n := range b {
			if err := Parse(b[:n], new(Message)); !errors.Is(err, ErrMalformed) {
				t.Errorf("%s, cut after %d bytes: %v, want ErrMalformed", g.name, n, err)
			}
		}
	}
}

func TestMessage_Fits(t *testing.T) {
	m := Message{Kind: Bye}
	for n := range Numbers {
		m.Done = append(m.Done, Done{uint8(n), 1})
	}
	if got := len(m.Append(nil)); got > MaxLen {
		t.Errorf("a goodbye of all numbers has %d bytes, more than MaxLen", got)
	}
}

// Only failures and goodbyes allocate.
func TestParse_Allocations(t *testing.T) {
	var m Message
	buf := make([]byte, 0, MaxLen)
	for _, g := range goldens {
		if g.m.Kind == Fail || g.m.Kind == Bye {
			continue
		}
		if n := testing.AllocsPerRun(100, func() { buf = g.m.Append(buf[:0]); _ = Parse(buf, &m) }); n != 0 {
			t.Errorf("%s: %v allocations, want none", g.name, n)
		}
	}
}

// No bytes make Parse panic, and a message that can be read is written the same again.
func FuzzParse(f *testing.F) {
	for _, g := range goldens {
		for _, v := range fuzzseed.Variants(unhex(f, g.wire)) {
			f.Add(v)
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var m, again Message
		if Parse(b, &m) != nil {
			return
		}
		out := m.Append(nil)
		if len(out) > len(b) || len(out) > MaxLen {
			t.Errorf("%d bytes become %d", len(b), len(out))
		}
		if err := Parse(out, &again); err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%+v, %v; want %+v", again, err, m)
		}
		_ = m.String()
	})
}
