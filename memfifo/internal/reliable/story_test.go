package reliable

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
)

// Each file is a story: see transcript.Net, and story.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/stories/*.txt", func() transcript.World {
		return &story{Net: transcript.Net{Times: true, Alike: alike}, model: &model{}}
	})
}

var numbers = regexp.MustCompile(`[\d,-]+`)

// alike is a line with its numbers left out, those of the ends excepted.
func alike(line string) string {
	way := min(len(line), len("0->1"))
	return line[:way] + numbers.ReplaceAllString(line[way:], "#")
}

// story is two ends and the frames between them. The commands, besides those of transcript.Net:
//
//	ends [size=120] [trip=50us] [start=N]        makes two ends, with frames of that size
//	open                                         does the handshake, of which nothing is shown
//	write 0 [records=1] [bytes=100] [lane=0]     records, which fill frames; these are sent as far as they may
//	uncork 0                                     the frame being filled goes
//	hold 1 [lane=0], resume 1 [lane=0]           an end cannot process records, and can again
//	close 1                                      says bye
//	restart 1                                    begins an end anew, with another incarnation
//	say 0 KIND [src=a] [dst=b] [sequence=N] [ack=N] [credit=N] [lane=0] [bytes=0]    a frame that 0 has not sent
//	counters 1                                   what an end has dropped
//
// In a frame, "data 5:100! ack 3" is frame 5 of its lane with records of 100 bytes, which requests
// an acknowledgement, and brings one of all before 3. Incarnations are a, b and so on.
type story struct {
	transcript.Net
	*model
	size  int
	start uint32
	lives []uint32
}

// storyEnd is an end as transcript.Net drives it.
type storyEnd struct {
	*end
	st   *story
	held [Lanes]bool
}

func (e *storyEnd) Deadline() (at monotime.Time, ok bool) { return e.c.Deadline() }

func (e *storyEnd) Receive(now monotime.Time, f *transcript.Frame) {
	restarts, byes := e.restarts, e.byes
	e.receive(now, f.Bytes)
	if e.restarts > restarts {
		e.st.Note("(%d: the peer has restarted)", e.node)
	}
	if e.byes > byes {
		e.st.Note("(%d: the peer has said bye)", e.node)
	}
	e.pump()
}

func (e *storyEnd) Advance(now monotime.Time) {
	failures := e.failures
	e.advance(now)
	if e.failures > failures {
		why := "the peer is silent"
		if e.event == DataLost {
			why = "no data has arrived"
		}
		e.st.Note("(%d: %s)", e.node, why)
	}
	e.pump()
}

// pump sends what may go.
func (e *storyEnd) pump() {
	now := e.st.Now
	for frames := e.next(now); len(frames) > 0; frames = e.next(now) {
		for _, b := range frames {
			e.st.send(e.node, e.peer, slices.Clone(b[headroom:]))
		}
	}
	e.check()
	if e.c.stuck() {
		e.fail("%d has something to send, and neither a frame nor a deadline", e.node)
	}
}

// send sends a frame, as the story has it.
func (st *story) send(from, to int, b []byte) {
	var h Header
	if err := Parse(b, &h); err != nil {
		panic(err)
	}
	kind, text := h.Kind.String(), h.Kind.String()
	switch h.Kind {
	case Data:
		kind = fmt.Sprintf("data%d", h.Sequence)
		text = fmt.Sprintf("data %d:%d%s", h.Sequence, len(b)-HeaderLen, map[bool]string{true: "!"}[h.AckNow])
		text += st.ackText(&h)
	case Ack:
		text = strings.TrimSpace(st.ackText(&h))
		if h.AckNow {
			kind, text = "probe", fmt.Sprintf("probe %d %s", h.Sequence, text)
		} else if h.Sequence > 0 {
			text += fmt.Sprintf(" answers %d", h.Sequence)
		}
	case Hello:
		text = fmt.Sprintf("hello of %s, challenge %d", st.life(h.Src), h.Sequence)
	case HelloAck:
		kind, text = "hello_ack", fmt.Sprintf("hello ack of %s to %s, response %d", st.life(h.Src), st.life(h.Dst), h.Ack)
		if h.Sequence > 0 {
			text += fmt.Sprintf(", challenge %d", h.Sequence)
		}
	case ByeAck:
		kind, text = "bye_ack", "bye ack"
	}
	if h.Lane > 0 {
		text += " lane=1"
	}
	st.Post(transcript.Frame{From: from, To: []int{to}, Kind: kind, Text: text, Bytes: b})
}

// ackText is what an acknowledgement says.
func (st *story) ackText(h *Header) string {
	text := fmt.Sprintf(" ack %d", h.Ack)
	if h.Kind == Data && h.AckLane != h.Lane {
		text += fmt.Sprintf(" of lane %d", h.AckLane)
	}
	if h.SACK != (SACK{}) {
		text += " sack " + h.SACK.text(h.Ack)
	}
	if h.Credit != Window {
		text += fmt.Sprintf(" credit %d", h.Credit)
	}
	return text
}

// text is the frames that have arrived behind ack, as 5-7,9.
func (s *SACK) text(ack uint32) string {
	is := func(i uint32) bool { return i < Window && s[i/wordBits]>>(i%wordBits)&1 != 0 }
	var ranges []string
	for i := uint32(0); i < Window; i++ {
		if !is(i) {
			continue
		}
		one := fmt.Sprint(ack + i)
		first := i
		for is(i + 1) {
			i++
		}
		if i > first {
			one += fmt.Sprintf("-%d", ack+i)
		}
		ranges = append(ranges, one)
	}
	return strings.Join(ranges, ",")
}

// life names an incarnation.
func (st *story) life(incarnation uint32) string {
	i := slices.Index(st.lives, incarnation)
	if i < 0 {
		i = len(st.lives)
		st.lives = append(st.lives, incarnation)
	}
	return string(rune('a' + i))
}

// Do implements transcript.World.
func (st *story) Do(words []string) error {
	err := st.command(words)
	if st.wrong != "" {
		err = errors.Join(err, errors.New(st.wrong))
	}
	return err
}

func (st *story) command(words []string) error {
	options := map[string]uint32{
		"size": 120, "start": 0, "records": 1, "bytes": 100, "lane": 0, "sequence": 0, "ack": 0, "credit": Window,
	}
	for _, w := range words[1:] {
		key, value, is := strings.Cut(w, "=")
		n, err := strconv.ParseUint(value, 10, 32)
		if _, known := options[key]; is && known && err == nil {
			options[key] = uint32(n)
		}
		if key == "trip" {
			if st.Trip, err = time.ParseDuration(value); err != nil {
				return err
			}
		}
	}
	switch words[0] {
	case "ends":
		st.Start()
		st.size, st.start = int(options["size"]), options["start"]
		st.Nodes = make([]transcript.Node, 2)
		st.begin(0)
		st.begin(1)
		return nil
	case "open":
		return st.open()
	}
	if known, err := st.Net.Do(words); known {
		return err
	}
	k, err := st.Node(words[1:])
	if err != nil {
		return err
	}
	e, lane := st.end(k), Lane(options["lane"])
	switch words[0] {
	case "write":
		for range options["records"] {
			if !e.write(st.Now, lane, int(options["bytes"])) {
				return errors.New("no room")
			}
		}
	case "uncork":
		e.c.Uncork(lane)
	case "hold":
		e.held[lane] = true
	case "say":
		return st.say(e, words, options)
	case "counters":
		st.counters(e)
	case "resume":
		e.held[lane] = false
		e.resume(lane)
	case "close":
		e.c.Close()
	case "restart":
		st.Down[k] = false
		st.begin(k)
		return nil
	default:
		return fmt.Errorf("there is no %q", words[0])
	}
	e.pump()
	return nil
}

// say sends a frame that an end has not sent, between the current incarnations or others. Data
// brings the next record of the end's program.
func (st *story) say(e *storyEnd, words []string, options map[string]uint32) error {
	kinds := map[string]Kind{"data": Data, "ack": Ack, "hello": Hello, "hello_ack": HelloAck, "bye": Bye, "bye_ack": ByeAck}
	lane := uint8(options["lane"])
	h := Header{
		Lane: lane, AckLane: lane, Credit: uint16(options["credit"]), Src: e.c.local, Dst: e.c.remote,
		Sequence: options["sequence"], Ack: options["ack"],
	}
	if len(words) > 2 {
		h.Kind = kinds[words[2]]
	}
	for _, w := range words[1:] {
		key, life, _ := strings.Cut(w, "=")
		switch key {
		case "src":
			h.Src = st.lives[life[0]-'a']
		case "dst":
			h.Dst = 0
			if life != "0" {
				h.Dst = st.lives[life[0]-'a']
			}
		}
	}
	b := make([]byte, maxAckLen)
	b = b[:h.put(b)]
	if h.Kind == Data {
		record := make([]byte, options["bytes"])
		e.model.write(record, e.out[lane])
		b = append(b, record...)
	}
	st.send(e.node, e.peer, b)
	return nil
}

// counters notes what an end has not taken.
func (st *story) counters(e *storyEnd) {
	c := e.c.cfg.Counters
	var words []string
	for _, one := range []struct {
		what string
		n    uint64
	}{
		{"duplicate", c.Duplicate}, {"out of order", c.OutOfOrder}, {"beyond the window", c.BeyondWindow},
		{"stale incarnation", c.StaleIncarnation}, {"too long", c.TooLong}, {"retransmitted", c.Retransmitted},
	} {
		if one.n > 0 {
			words = append(words, fmt.Sprintf("%s %d", one.what, one.n))
		}
	}
	st.Note("(%d counts: %s)", e.node, strings.Join(words, ", "))
}

func (st *story) end(k int) *storyEnd { return st.Nodes[k].(*storyEnd) }

// begin makes an end, or makes it anew.
func (st *story) begin(k int) {
	life := uint32(100 + len(st.lives))
	st.life(life)
	e := &storyEnd{st: st, end: st.newEnd(k, 1-k, st.size, life, st.start)}
	e.holds = func(l Lane) bool { return e.held[l] }
	st.Nodes[k] = e
}

// open has the ends know each other, and be idle.
func (st *story) open() error {
	for _, words := range [][]string{{"write", "0", "bytes=20"}, {"deliver"}, {"advance", "1s"}} {
		if err := st.command(words); err != nil {
			return err
		}
	}
	st.Net.Happened()
	return nil
}

// Happened returns the frames since the last call, and the state of the ends.
func (st *story) Happened() string {
	lines := st.Net.Happened()
	for k := range st.Nodes {
		e := st.end(k)
		state := fmt.Sprintf("%d %v", k, e.c.state)
		for l := range e.c.lanes {
			s, r := &e.c.lanes[l].sender, &e.c.lanes[l].receiver
			first := max(st.start, 1)
			if l > 0 && s.queued == first && s.fill == 0 && r.nxt == first && r.count == 0 {
				continue
			}
			if l > 0 {
				state += ", lane 1:"
			}
			state += fmt.Sprintf(" sent %d acked %d cwnd %d delivered %d", s.nxt-first, s.una-first, s.reno.Window(), r.nxt-first)
			if s.queued != s.nxt || s.fill > 0 {
				state += fmt.Sprintf(" waiting %d", s.queued-s.nxt+uint32(min(s.fill, 1)))
			}
			if r.count > 0 {
				state += fmt.Sprintf(" kept %d", r.count)
			}
		}
		if st.Down[k] {
			state = fmt.Sprintf("%d down", k)
		}
		lines = append(lines, state)
	}
	return strings.Join(lines, "\n")
}
