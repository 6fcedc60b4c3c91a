package matching

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/internal/transcript"
)

// Each file is a story: see transcript.Net, and story.
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/stories/*.txt", func() transcript.World { return &story{} })
}

// story is processes and the records between them, which arrive in the order in which they were
// sent when a command delivers them. The commands, besides those of transcript.Net:
//
//	processes 2 [eager=100] [bytes=1000] [headers=8] [offer=200] [lent=0]    as in Config
//	send 0 1 m [tag=0] [size=10] [context=1] [sync]         message m, of process 0 to 1
//	receive 1 r [from=0] [tag=0] [size=1000] [context=1]    receive r; from=any and tag=any, too
//	cancel 1 r, cancelsend 0 m             takes it back
//	probe 1 [from=0] [tag=0] [context=1]     looks for a message; await 1 waits for one
//	revoke 1 [context=1]                     ends a context
//	down 0 1                                 process 1 is down to 0
//	say 0 1 KIND [id=N] [tag=N] [size=N] [seen=N] [headers=N] [bytes=N] [data=N]    any record
//
// In a record, "offer r: tag 0, 1000, seen 2" is receive r of 1000 bytes, offered when 2 messages
// were taken.
type story struct {
	transcript.Net
	records []carried // by number, which is what a frame has for bytes
	// names of sends and receives by their numbers on the wire, each of one process.
	sends, receives map[wireID]string
}

// carried is a record on its way, with what an eager message brings.
type carried struct {
	Record
	name string
	data []byte
}

type wireID struct {
	process int
	id      uint64
}

// storyProcess is a process as transcript.Net drives it.
type storyProcess struct {
	st       *story
	me       int
	e        *Engine
	sends    map[string]*Send
	receives map[string]*Receive
	kept     map[*Message]string
	handling string // the name of the message that has just come
}

func (p *storyProcess) Deadline() (at monotime.Time, ok bool) { return at, false }

func (p *storyProcess) Advance(monotime.Time) {}

func (p *storyProcess) Receive(_ monotime.Time, f *transcript.Frame) {
	r := p.st.records[int(f.Bytes[0])<<8|int(f.Bytes[1])]
	p.handling = r.name
	out, err := p.e.Handle(Rank(f.From), &r.Record, r.data, nil)
	if err != nil {
		p.st.Note("(%d counts: makes no sense)", p.me)
	}
	p.do(out)
}

// do carries out what the engine wants, in order.
func (p *storyProcess) do(out []Output) {
	for i := range out {
		switch o := &out[i]; o.Do {
		case Push:
			p.push(o)
		case Write:
			name := o.Send.Owner.(string)
			to := p.st.receives[wireID{int(o.To), o.Record.ID}]
			if o.Send.Size > o.Capacity {
				p.st.Note("(%d: %s is too long for %s)", p.me, name, to)
			} else {
				p.st.Note("(%d writes %s into %s)", p.me, name, to)
			}
			p.st.post(p.me, int(o.To), carried{o.Record, name, nil})
		case Deliver:
			p.st.Note("(%d: %s into %s%s)", p.me, p.name(o.Message), o.Receive.Owner, truncated(o.Message.Size, o.Receive))
			if o.Message.Kept() {
				delete(p.kept, o.Message)
				p.e.Release(o.Message)
			}
		case Fetch:
			name := p.st.sends[wireID{int(o.To), o.Record.ID}]
			p.st.Note("(%d reads %s into %s%s)", p.me, name, o.Receive.Owner, truncated(o.Record.Size, o.Receive))
			p.do(p.e.Fetched(o.To, o.Record.ID, nil))
		case Keep:
			p.kept[o.Message] = p.handling
			p.st.Note("(%d keeps %s)", p.me, p.handling)
		case CompleteSend:
			p.st.Note("(%d: %s is complete)", p.me, o.Send.Owner)
		case DropSend:
			p.st.Note("(%d: %s was dropped)", p.me, o.Send.Owner)
		case CompleteReceive:
			p.st.Note("(%d: %s into %s%s)", p.me, p.handling, o.Receive.Owner, truncated(o.Message.Size, o.Receive))
		case CancelReceive:
			p.st.Note("(%d: %s is cancelled)", p.me, o.Receive.Owner)
		case FailSend:
			p.st.Note("(%d: %s fails)", p.me, o.Send.Owner)
		case FailReceive:
			p.st.Note("(%d: %s fails)", p.me, o.Receive.Owner)
		}
	}
}

func truncated(size int, r *Receive) string {
	if size <= r.Capacity {
		return ""
	}
	return fmt.Sprintf(", which is too long by %d", size-r.Capacity)
}

// name of a message that has come.
func (p *storyProcess) name(m *Message) string {
	if name, is := p.kept[m]; is {
		return name
	}
	return p.handling
}

// push sends a record, behind the name of its message.
func (p *storyProcess) push(o *Output) {
	r := carried{Record: o.Record}
	if o.Send != nil {
		r.name = o.Send.Owner.(string)
		if r.ID != 0 {
			p.st.sends[wireID{p.me, r.ID}] = r.name
		}
		if r.Kind == Eager {
			r.data = make([]byte, r.Size)
		}
	}
	if r.Kind == Offer {
		p.st.receives[wireID{p.me, r.ID}] = o.Receive.Owner.(string)
	}
	p.st.post(p.me, int(o.To), r)
}

// post sends a record, as the story has it.
func (st *story) post(from, to int, r carried) {
	kind := [...]string{
		"none", "eager", "request", "matched", "offer", "done", "withdraw", "withdrawn", "credit", "waiting", "gone",
	}[r.Kind]
	text := kind
	switch r.Kind {
	case Eager, Request:
		text += fmt.Sprintf(" %s: tag %d, %d", r.name, r.Tag, r.Size)
		if r.ID != 0 && r.Kind == Eager {
			text += ", wants matched"
		}
		if r.More {
			text += ", more wait"
		}
	case Matched:
		text += " " + st.sends[wireID{to, r.ID}]
	case Offer:
		text += fmt.Sprintf(" %s: tag %d, %d, seen %d", st.receives[wireID{from, r.ID}], r.Tag, r.Size, r.Seen)
	case Done:
		text += fmt.Sprintf(" %s: %s, tag %d, %d", st.receives[wireID{to, r.ID}], r.name, r.Tag, r.Size)
	case Withdraw:
		text += " " + st.receives[wireID{from, r.ID}]
	case Withdrawn:
		text += " " + st.receives[wireID{to, r.ID}]
	case Credit:
		text += fmt.Sprintf(" %d headers, %d bytes, seen %d", r.Headers, r.Bytes, r.Seen)
	}
	n := len(st.records)
	st.records = append(st.records, r)
	st.Post(transcript.Frame{From: from, To: []int{to}, Kind: kind, Text: text, Bytes: []byte{byte(n >> 8), byte(n)}})
}

// Do implements transcript.World.
func (st *story) Do(words []string) error {
	options := map[string]int{
		"eager": 100, "bytes": 1000, "headers": 8, "offer": 200, "lent": 0, "tag": 0, "size": -1, "context": 1, "from": 0,
		"id": 0, "seen": 0, "data": 0,
	}
	var args []string
	for _, w := range words[1:] {
		key, value, is := strings.Cut(w, "=")
		n, err := strconv.Atoi(value)
		_, known := options[key]
		switch {
		case is && value == "any":
			options[key] = -1
		case is && known && err == nil:
			options[key] = n
		default:
			args = append(args, w)
		}
	}
	if words[0] == "processes" && len(args) == 1 {
		count, err := strconv.Atoi(args[0])
		st.begin(count, options)
		return err
	}
	if known, err := st.Net.Do(words); known {
		return err
	}
	k, err := st.Node(args)
	if err != nil {
		return err
	}
	p := st.Nodes[k].(*storyProcess)
	switch words[0] {
	case "send", "down", "say":
		to, err := st.Node(args[1:])
		if err != nil {
			return err
		}
		return p.toward(words[0], to, args[2:], options)
	}
	return p.program(words[0], args[1:], options)
}

func (st *story) begin(count int, options map[string]int) {
	st.Start()
	st.sends, st.receives = map[wireID]string{}, map[wireID]string{}
	for k := range count {
		e := New(Config{
			Rank: Rank(k), Size: count, EagerLimit: options["eager"], EagerBytes: options["bytes"],
			Headers: options["headers"], OfferFrom: options["offer"], MaxLent: options["lent"],
		})
		st.Nodes = append(st.Nodes, &storyProcess{
			st: st, me: k, e: e, sends: map[string]*Send{}, receives: map[string]*Receive{}, kept: map[*Message]string{},
		})
	}
}

// toward does what has another process in it.
func (p *storyProcess) toward(what string, to int, args []string, options map[string]int) error {
	v := Envelope{Context: uint32(options["context"]), Tag: int32(options["tag"]), Size: options["size"]}
	switch {
	case what == "down":
		p.do(p.e.Down(Rank(to), nil))
	case len(args) == 0:
		return errors.New("what?")
	case what == "send":
		if v.Size < 0 {
			v.Size = 10
		}
		s := &Send{To: Rank(to), Envelope: v, Synchronous: slices.Contains(args, "sync"), Owner: args[0]}
		p.sends[args[0]] = s
		p.do(p.e.Send(s, nil))
	default:
		kinds := map[string]Kind{
			"eager": Eager, "request": Request, "matched": Matched, "offer": Offer, "done": Done, "withdraw": Withdraw,
			"withdrawn": Withdrawn, "credit": Credit, "waiting": Waiting,
		}
		v.Size = max(v.Size, 0)
		r := Record{Kind: kinds[args[0]], Envelope: v, ID: uint64(options["id"]), Seen: uint32(options["seen"])}
		if r.Kind == Credit {
			r.Headers, r.Bytes = options["headers"], options["bytes"]
		}
		p.st.post(p.me, to, carried{r, "forged", make([]byte, options["data"])})
	}
	return nil
}

// program does what a program does alone.
func (p *storyProcess) program(what string, args []string, options map[string]int) error {
	q := Pattern{Source: Rank(options["from"]), Context: uint32(options["context"]), Tag: int32(options["tag"])}
	switch what {
	case "probe":
		if m := p.e.Probe(&q); m != nil {
			p.st.Note("(%d finds %s: of %d, tag %d, %d)", p.me, p.kept[m], m.Source, m.Tag, m.Size)
		} else {
			p.st.Note("(%d finds nothing)", p.me)
		}
		return nil
	case "await":
		p.do(p.e.Await(&q, nil))
		return nil
	case "revoke":
		p.do(p.e.Revoke(q.Context, nil))
		return nil
	}
	if len(args) == 0 {
		return errors.New("which?")
	}
	switch what {
	case "receive":
		if options["size"] < 0 {
			options["size"] = 1000
		}
		r := &Receive{Pattern: q, Capacity: options["size"], Owner: args[0]}
		p.receives[args[0]] = r
		p.do(p.e.Post(r, nil))
	case "cancel":
		p.do(p.e.Cancel(p.receives[args[0]], nil))
	case "cancelsend":
		p.st.Note("(%d: %s is taken back: %v)", p.me, args[0], p.e.CancelSend(p.sends[args[0]]))
	default:
		return fmt.Errorf("there is no %q", what)
	}
	return nil
}

// Happened returns the records since the last call, and what each process has of the others.
func (st *story) Happened() string {
	lines := st.Net.Happened()
	for k := range st.Nodes {
		e := st.Nodes[k].(*storyProcess).e
		posted, waiting := len(e.wild), 0
		for i := range e.peers {
			posted += len(e.peers[i].posted)
			waiting += len(e.peers[i].waiting)
		}
		lines = append(lines, fmt.Sprintf("%d: posted %d, kept %d, waiting for credit %d", k, posted, len(e.kept), waiting))
	}
	return strings.Join(lines, "\n")
}
