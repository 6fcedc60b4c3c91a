package engine

import (
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/barrier/internal/agreement"
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
		"41 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
	{"notify, first generation: rank 0 is not known", Message{Kind: Notify, Generation: 1, Incarnation: 0xb1b2b3b4, Known: []uint32{0, 0xb1b2b3b4, 5}},
		"41 00 00 00 0000000000000000 00000000 00000001 00000000 b1b2b3b4 0003 00000000 b1b2b3b4 00000005"},
	{"notify, first generation, of a large group", Message{Kind: Notify, Generation: 1, Incarnation: 1},
		"41 00 00 00 0000000000000000 00000000 00000001 00000000 00000001 0000"},
	{"nack, last generation and label", Message{Kind: Nack, Incarnation: 1, Number: 255, Label: 255, Generation: 1<<32 - 1},
		"42 ff ff 00 0000000000000000 00000000 ffffffff 00000000 00000001"},
	{"nack to a member that was heard", Message{Kind: Nack, Heard: true, Incarnation: 1},
		"42 00 00 08 0000000000000000 00000000 00000000 00000000 00000001"},
	{"not yet, not entered", Message{Kind: NotYet, Incarnation: 1, Generation: 2, Own: 1},
		"43 00 00 00 0000000000000000 00000000 00000002 00000000 00000001 00000001"},
	{"not yet, entered", Message{Kind: NotYet, Incarnation: 1, Entered: true, Generation: 2, Own: 2},
		"43 00 00 01 0000000000000000 00000000 00000002 00000000 00000001 00000002"},
	{"fail: another algorithm, 1 and 258", Message{Kind: Fail, Incarnation: 1, Generation: 1, Failure: newFailure(OtherAlgorithm, 1, 258)},
		"44 00 00 00 0000000000000000 00000000 00000001 00000000 00000001 05 00 0002 0001 0102"},
	{"bye, nothing completed", Message{Kind: Bye, Incarnation: 1},
		"45 00 00 00 0000000000000000 00000000 00000000 00000000 00000001 00000000 0000 0000"},
	{"bye, two numbers completed", Message{Kind: Bye, Incarnation: 1, Echo: 0xb5b6b7b8, Done: []Done{{0, 3}, {255, 4}}, Known: []uint32{1, 0xb5b6b7b8}},
		"45 00 00 00 0000000000000000 00000000 00000000 00000000 00000001 b5b6b7b8 0002 00 00000003 ff 00000004 0002 00000001 b5b6b7b8"},
	{"bye ack", Message{Kind: ByeAck}, "46 00 00 00 0000000000000000 00000000 00000000 00000000 00000000"},
	{"status request", Message{Kind: StatusRequest, Incarnation: 1, Generation: 4},
		"47 00 00 00 0000000000000000 00000000 00000004 00000000 00000001"},
	{"status reply", Message{Kind: StatusReply, Incarnation: 1, Generation: 4},
		"48 00 00 00 0000000000000000 00000000 00000004 00000000 00000001"},
	{"status reply, entered", Message{Kind: StatusReply, Incarnation: 1, Entered: true, Generation: 4},
		"48 00 00 01 0000000000000000 00000000 00000004 00000000 00000001"},
	{"no such group", Message{Kind: NoSuchGroup, Identity: Identity{1, 2}, Answers: Nack},
		"49 00 00 00 0000000000000001 00000002 00000000 00000000 00000000 00000000 02"},
	{"no such group, but epoch 7", Message{Kind: NoSuchGroup, Identity: Identity{1, 2}, Lowest: 7, Answers: Report},
		"49 00 00 00 0000000000000001 00000002 00000000 00000000 00000000 00000007 0a"},
	{"no such group any more", Message{Kind: NoSuchGroup, Heard: true, Answers: Nack},
		"49 00 00 08 0000000000000000 00000000 00000000 00000000 00000000 00000000 02"},
	{"report that asks, of nobody", Message{Kind: Report, Incarnation: 1, Report: &agreement.Report{Query: true}},
		"4a 00 00 04 0000000000000000 00000000 00000000 00000000 00000001 00000000 0000"},
	{"report, decided: 1 is silent, 258 has begun anew", Message{Kind: Report, Incarnation: 1, Generation: 3, Report: &agreement.Report{
		Gone: []agreement.Gone{{Rank: 1, Reason: Silent}, {Rank: 258, Reason: Restarted}}, Version: 3, Echo: 0xb5b6b7b8, Decided: true}},
		"4a 00 00 02 0000000000000000 00000000 00000003 00000000 00000001 b5b6b7b8 0002 0001 01 0102 04"},
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

func TestParse_Malformed(t *testing.T) {
	for _, c := range []struct{ name, wire string }{
		{"nothing", ""},
		{"version 3", "31 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
		{"version 5", "51 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
		{"kind 0", "40 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
		{"kind 11", "4b 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 b1b2b3b4"},
		{"notify of no incarnation", "41 07 03 00 0102030405060708 00000005 00000009 a1a2a3a4 00000000"},
		{"report of no incarnation", "4a 00 00 00 0000000000000000 00000001 00000001 00000000 00000000 00000000 0000"},
		{"notify, 321 incarnations", "41 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 0141" + strings.Repeat("00000001", maxKnown+1)},
		{"bye, longer than all numbers", "45 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 00000000 0001 00 00000001 0140" +
			strings.Repeat("00000001", maxKnown)},
		{"fail, no reason", "44 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 00 00 0001 0001"},
		{"fail, unknown reason", "44 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 06 00 0001 0001"},
		{"fail, of three members", "44 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 01 00 0003 0001 0002 0003"},
		{"report, of 401 members", "4a 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 00000000 0191" + ascending(401)},
		{"report, a member twice", "4a 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 00000000 0002 0001 01 0001 01"},
		{"report, not in order", "4a 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 00000000 0002 0002 01 0001 01"},
		{"report, no reason", "4a 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 00000000 0001 0001 00"},
		{"report, unknown reason", "4a 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 00000000 0001 0001 05"},
		{"report, decided that nobody is gone", "4a 00 00 02 0000000000000000 00000001 00000001 00000000 00000001 00000000 0000"},
		{"fail, of no member", "44 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 01 00 0000"},
		{"bye, 257 numbers", "45 00 00 00 0000000000000000 00000001 00000001 00000000 00000001 00000000 0101" +
			strings.Repeat("00", 257*doneLen) + "0000"},
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
	m := Message{Kind: Bye, Incarnation: 1}
	for n := range Numbers {
		m.Done = append(m.Done, Done{uint8(n), 1})
	}
	longest := m.Append(nil)
	if len(longest) != MaxLen || Parse(longest, new(Message)) != nil {
		t.Errorf("a goodbye of all numbers has %d bytes, and is read: %v; want MaxLen", len(longest), Parse(longest, new(Message)))
	}
	m = Message{Kind: Bye, Incarnation: 1, Known: make([]uint32, maxKnown)}
	if b := m.Append(nil); len(b) > MaxLen || Parse(b, new(Message)) != nil {
		t.Errorf("a goodbye of nothing in the largest group that tells incarnations has %d bytes", len(b))
	}
	m = Message{Kind: Notify, Generation: 1, Incarnation: 1, Known: make([]uint32, maxKnown)}
	if b := m.Append(nil); len(b) > MaxLen || Parse(b, new(Message)) != nil {
		t.Errorf("a notify of the largest group that tells incarnations has %d bytes", len(b))
	}
	m = Message{Kind: Report, Incarnation: 1, Report: &agreement.Report{}}
	for rank := range 2 * agreement.MaxGone { // more than fit are not named
		m.Report.Gone = append(m.Report.Gone, agreement.Gone{Rank: rank, Reason: Silent})
	}
	var got Message
	b := m.Append(nil)
	if err := Parse(b, &got); err != nil || len(b) > MaxLen || len(got.Report.Gone) != agreement.MaxGone {
		t.Errorf("a report of many has %d bytes and %v", len(b), err)
	}
}

// A label tells messages of a schedule apart, and others have none. A report and a goodbye are of all
// numbers, and so have none of these.
func TestMessage_NoLabel(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(5)
	sent := a.RequestStatus(5, nil)
	sent = append(sent, a.Leave(nil)...)
	f := newFailure(OtherAlgorithm, 0, 1)
	sent = append(sent, Send{Message: a.failMessage(5, 1, f)})
	a.Accuse(a.now, 1, Left)
	sent = a.Advance(a.now, sent)
	seen := map[Kind]bool{}
	for _, s := range sent {
		m := &s.Message
		if seen[m.Kind] = true; m.Label != 0 || (m.Kind == Bye || m.Kind == Report) && m.Number != 0 || m.Kind == Bye && m.Generation != 0 {
			t.Errorf("%v of number %d, label %d, generation %d", m.Kind, m.Number, m.Label, m.Generation)
		}
	}
	for _, k := range []Kind{StatusRequest, Bye, Fail, Report} {
		if !seen[k] {
			t.Errorf("no %v was sent", k)
		}
	}
}

// ascending returns the first members of a report in hex.
func ascending(count int) (s string) {
	for rank := range count {
		s += fmt.Sprintf("%04x01", rank)
	}
	return s
}

// Only failures, goodbyes, reports and first generations allocate.
func TestParse_Allocations(t *testing.T) {
	var m Message
	buf := make([]byte, 0, MaxLen)
	for _, g := range goldens {
		if g.m.Kind == Fail || g.m.Kind == Bye || g.m.Kind == Report || g.m.Known != nil {
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

// Messages that are of no step have label 0, and those that are of no barrier number 0.
func TestMessages_OfNoStep(t *testing.T) {
	a := newAlone(t, "star", 0, 3)
	a.arrives(7)
	out := a.RequestStatus(7, nil)
	out = a.RepeatStatus(7, out)
	out = a.Leave(out)
	a.Accuse(a.now, 2, Silent)
	out = a.Advance(a.now, out)
	other := a.from(1, Nack, 1, 0)
	other.Number, other.Label = 7, 5
	other.Algorithm++
	out = a.Handle(a.now, 1, &other, out)
	kinds := map[Kind]bool{}
	for i := range out {
		m := &out[i].Message
		number := uint8(7)
		if kinds[m.Kind] = true; m.Kind == Bye || m.Kind == Report {
			number = 0
		}
		if m.Label != 0 || m.Number != number {
			t.Errorf("%v: label %d of number %d, want 0 of %d", m, m.Label, m.Number, number)
		}
	}
	for _, k := range []Kind{StatusRequest, Bye, Report, Fail} {
		if !kinds[k] {
			t.Errorf("%q has no message of kind %d", sends(out), k)
		}
	}
}

// A report fits a link's frames, and names as many as they hold.
func TestMaxGone(t *testing.T) {
	for most := 37; most <= 200; most++ {
		n := maxGone(most)
		length := func(n int) int {
			m := Message{Kind: Report, Report: &agreement.Report{Gone: make([]agreement.Gone, n)}}
			return len(m.Append(nil))
		}
		if length(n) > most || n < agreement.MaxGone && length(n+1) <= most {
			t.Errorf("%d bytes: %d are named, which takes %d", most, n, length(n))
		}
	}
	if n := maxGone(10); n != 1 {
		t.Errorf("10 bytes: %d are named, want 1", n)
	}
}
