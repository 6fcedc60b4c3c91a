package manager

import (
	"bufio"
	"encoding/json"
	"io"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/internal/claims"
)

// A session is a connection on which, after it was upgraded from HTTP, both sides send lines: one JSON object each.
//
//	program                                  manager
//	{"start":{...,"pairs":[...]}}  ------->  who it is, and what it had asked for before, if the connection broke
//	                               <-------  {"version":7,"full":true,"routes":[...]}
//	{"id":1,"set":[...]}           ------->  a change, answered on the spot with the routes that have changed by it
//	                               <-------  {"id":1,"version":8,"routes":[...]}
//	                               <-------  {"version":9,"routes":[...],"ack":true}   pushed: somebody else changed something
//	{"applied":9}                  ------->  the program sends by version 9
//	                               <-------  {"report":4}                   somebody asks for the counters
//	{"report":4,"counts":[...]}    ------->
const upgradeName = "rawlane-session"

// sessionPath is where the connection begins.
const sessionPath = "/v1/session"

// fromProgram is a line of a program's.
type fromProgram struct {
	ID uint64 `json:"id,omitempty"` // of a request, repeated in its answer; 0: no answer is wanted
	// One of:
	Start   *start   `json:"start,omitempty"`
	Set     []Change `json:"set,omitempty"`
	Reset   bool     `json:"reset,omitempty"`
	Applied uint64   `json:"applied,omitempty"`
	Report  uint64   `json:"report,omitempty"` // answers a question; with Counts alone the program reports by itself
	Counts  []sent   `json:"counts,omitempty"`
	More    bool     `json:"more,omitempty"` // of Counts, in the next line
}

// start is what a program says first.
type start struct {
	Session string    `json:"session"` // an id that no other has
	Program string    `json:"program,omitempty"`
	Pairs   []claimed `json:"pairs,omitempty"` // its claims so far, since the versions that they were answered with
}

// claimed is a change that a program or the operator has asked for, and the version since when: the order of claims outlives the manager.
type claimed = claims.Claimed

// changesOf returns what is claimed, without since when.
func changesOf(all []claimed) (changes []Change) {
	for _, c := range all {
		changes = append(changes, c.Change)
	}
	return changes
}

// fromManager is a line of a manager's.
type fromManager struct {
	ID      uint64   `json:"id,omitempty"`
	Error   *Error   `json:"error,omitempty"`
	Version uint64   `json:"version,omitempty"`
	Full    bool     `json:"full,omitempty"` // Routes are all that there are; else those that have changed
	Routes  []Route  `json:"routes,omitempty"`
	Dropped []Change `json:"dropped,omitempty"` // claims that could not be kept
	Ignored int      `json:"ignored,omitempty"` // pairs of other nodes in the request
	Report  uint64   `json:"report,omitempty"`  // asks for the counters
	Ack     bool     `json:"ack,omitempty"`     // asks for an applied line, once Routes are in force
	Urgent  bool     `json:"urgent,omitempty"`  // Routes avoid a dead path: waiting for what it carries is of no use
	// MAC is the node's address: in the answer to start.
	MAC *transport.MAC `json:"mac,omitempty"`
}

// countsPerLine keeps a line of counters below MaxLine: one takes some 70 bytes.
const countsPerLine = 8192

// reportLines are the lines that report counters: one at least, with the question's number in the last.
func reportLines(report uint64, counts []sent) (lines []*fromProgram) {
	for len(counts) > countsPerLine {
		lines = append(lines, &fromProgram{Counts: counts[:countsPerLine], More: true})
		counts = counts[countsPerLine:]
	}
	if counts == nil {
		counts = []sent{}
	}
	return append(lines, &fromProgram{Report: report, Counts: counts})
}

// sent is a vlan.Sent as JSON.
type sent struct {
	Dst    transport.MAC `json:"dst"`
	VID    transport.VID `json:"vid"`
	Frames uint64        `json:"frames"`
	Bytes  uint64        `json:"bytes"`
}

func sentJSON(counts []vlan.Sent) []sent {
	docs := make([]sent, 0, len(counts))
	for _, c := range counts {
		if c.Frames > 0 {
			docs = append(docs, sent(c))
		}
	}
	return docs
}

func sentFrom(docs []sent) []vlan.Sent {
	counts := make([]vlan.Sent, len(docs))
	for i, d := range docs {
		counts[i] = vlan.Sent(d)
	}
	return counts
}

// newLines returns a scanner of lines of up to MaxLine bytes.
func newLines(r io.Reader) *bufio.Scanner {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 4<<10), MaxLine)
	return lines
}

// writeLine writes a line in one write, so that one system call carries it.
func writeLine(w io.Writer, message any) error {
	b, err := json.Marshal(message)
	if err != nil {
		return err
	}
	_, err = w.Write(append(b, '\n'))
	return err
}
