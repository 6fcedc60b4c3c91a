package barrier

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

var shownAlgorithms = []string{
	"shuffle", "tree:2", "tree:3", "tree:4", "treetree:2", "treetree:3", "heap:2", "heap:3", "concurrent", "star", "hier:4", "hier:4:star:shuffle",
	"hier:4:shuffle:treetree:2", "hier:2:tree:2:hier:3:star:concurrent", "repeated:4:star:tree:2", "chassis", "chassis-repeated",
	"stripe:2:tree:4", "redundant:3:concurrent", "stripe:3:hier:4", "auto",
}

// Every algorithm is drawn at every size: the text has all its messages, and the picture an arrow
// for each.
func TestBarrierShow_DrawsAllAlgorithms(t *testing.T) {
	for _, name := range shownAlgorithms {
		for _, n := range []int{1, 2, 3, 8, 13, 32} {
			t.Run(fmt.Sprintf("%s/%d", name, n), func(t *testing.T) {
				s := &showVerb{name: name, nodes: n, nics: 1, rank: anyRank, logp: schedule.DefaultLogP}
				a, err := s.algorithm()
				if err != nil {
					t.Fatal(err)
				}
				p, err := s.plan(t.Context(), a)
				if err != nil {
					t.Fatal(err)
				}
				if p.frames != a.Frames(n) || p.predicted() != a.Cost(n) {
					t.Errorf("%d frames, %v; want %d and %v", p.frames, p.predicted(), a.Frames(n), a.Cost(n))
				}
				checkText(t, p)
				checkPicture(t, p)
				for rank := range n {
					p.writeRank(io.Discard, rank)
				}
			})
		}
	}
}

// What auto has considered has the head "estimated" where those costs are estimates: the choice's
// stands beside what its schedule takes, which is another time.
func TestBarrierShow_SaysEstimates(t *testing.T) {
	for _, row := range []struct {
		nodes, nics int
		want        string
	}{{1, 1, "predicted"}, {64, 1, "predicted"}, {70, 1, "estimated"}, {70, 2, "predicted"}} {
		s := &showVerb{name: "auto", nodes: row.nodes, nics: row.nics, rank: anyRank, logp: schedule.DefaultLogP}
		a, err := s.algorithm()
		if err != nil {
			t.Fatal(err)
		}
		p, err := s.plan(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		head, _, _ := strings.Cut(p.choiceTable(), "\n")
		if want := []string{"considered", row.want, "frames"}; !slices.Equal(strings.Fields(head), want) {
			t.Errorf("%d nodes, %d NICs: %q, want %v", row.nodes, row.nics, head, want)
		}
	}
}

// checkText makes sure that the phases have every message once, each from one who was told
// something in the phase before, and that the text can be written.
func checkText(t *testing.T, p *plan) {
	t.Helper()
	all, last := 0, map[int]int{} // the phase in which each rank was told something last
	for i, phase := range p.phases() {
		all += len(phase)
		told := map[int]bool{}
		for _, m := range phase {
			for rank := range p.nodes {
				if m.to == rank || m.to == schedule.All && rank != m.from {
					told[rank] = true
				}
			}
		}
		for _, m := range phase {
			if last[m.from] != i {
				t.Errorf("phase %d: %d was told something in phase %d last", i+1, m.from, last[m.from])
			}
		}
		for rank := range told {
			last[rank] = i + 1
		}
	}
	if all != p.frames {
		t.Errorf("%d messages in phases, want %d", all, p.frames)
	}
	var text bytes.Buffer
	p.writeText(&text)
	if !strings.HasPrefix(text.String(), p.headline()+"\n") {
		t.Error(text.String())
	}
}

// checkPicture makes sure that the picture is XML with an arrow for each event and a mark for each
// exit, and the same each time.
func checkPicture(t *testing.T, p *plan) {
	t.Helper()
	var picture, again bytes.Buffer
	drawPicture(&picture, p)
	drawPicture(&again, p)
	if !bytes.Equal(picture.Bytes(), again.Bytes()) {
		t.Error("two pictures of one plan differ")
	}
	if strings.Contains(picture.String(), "NaN") || strings.Contains(picture.String(), "Inf") {
		t.Error("a place in the picture is no number")
	}
	classes, lines := map[string]int{}, 0
	inMessage := false
	for d := xml.NewDecoder(&picture); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		e, ok := token.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "g":
			inMessage = false
			for _, a := range e.Attr {
				if a.Name.Local == "class" {
					classes[a.Value]++
					inMessage = a.Value == "message"
				}
			}
		case "line":
			if inMessage {
				lines++
				inMessage = false
			}
		}
	}
	if classes["message"] != len(p.events) || lines != len(p.events) || classes["exit"] != p.nodes {
		t.Errorf("%d arrows with %d lines, %d exits; want %d and %d", classes["message"], lines, classes["exit"], len(p.events), p.nodes)
	}
}

// What has the most ranks is drawn, too, in few lines.
func TestBarrierShow_AbbreviatesTheLargest(t *testing.T) {
	for _, name := range []string{"shuffle", "tree:2", "concurrent", "hier:16:star:shuffle", "chassis"} {
		out, errs, status := command(t, "barrier", "show", "--algo", name, "--nodes", "5000")
		if status != cli.ExitDone || errs != "" {
			t.Fatalf("%s: status %d: %s", name, status, errs)
		}
		if n := strings.Count(out, "\n"); n > 80 {
			t.Errorf("%s: %d lines", name, n)
		}
		if strings.Contains(out, "more like these") != strings.Contains(out, "abbreviated: ") {
			t.Errorf("%s: does not say whether it is abbreviated:\n%s", name, out)
		}
	}
}

func TestRanks(t *testing.T) {
	for _, c := range []struct {
		list []int
		want string
	}{
		{[]int{4}, "4"},
		{[]int{1, 2}, "1, 2"},
		{[]int{1, 2, 3, 7, 9, 10}, "1-3, 7, 9, 10"},
		{[]int{3, 6, 9, 12}, "3, 6, 9, 12"},
		{[]int{3, 6, 9, 12, 15, 16}, "3, 6 ... 15, 16"},
		{[]int{9, 3, 1}, "9, 3, 1"},
		{[]int{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536, 131072}, "1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, and 2 more"},
	} {
		if got := ranks(c.list); got != c.want {
			t.Errorf("%v: %q, want %q", c.list, got, c.want)
		}
	}
}

func TestArrows(t *testing.T) {
	for _, c := range []struct {
		name string
		list []notification
		want string
	}{
		{"each way", []notification{{0, 1, 0}, {1, 0, 0}}, "0 <-> 1"},
		{"to one", []notification{{1, 0, 0}, {2, 0, 0}, {4, 3, 0}}, "1, 2 -> 0|4 -> 3"},
		{"from one", []notification{{0, 1, 0}, {0, 2, 0}, {3, 4, 0}}, "0 -> 1, 2|3 -> 4"},
		{"from one who is not the only one", []notification{{0, 1, 0}, {0, 2, 0}, {3, 2, 0}}, "0 -> 1|0, 3 -> 2"},
		{"multicast", []notification{{0, schedule.All, 0}, {1, 2, 0}}, "0 => all|1 -> 2"},
	} {
		if got := strings.Join(arrows(c.list), "|"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// The keys of docs/barrier-show.md are those that are printed.
func TestBarrierShow_JSON(t *testing.T) {
	doc, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", "barrier-show.md"))
	if err != nil {
		t.Fatal(err)
	}
	out, errs, status := command(t, "barrier", "show", "--nodes", "16", "--nics", "2", "--os", "3us", "--l", "17.5us", "--or", "9.5us", "--gap", "9us", "--json")
	var r showResult
	if err := json.Unmarshal([]byte(out), &r); status != cli.ExitDone || errs != "" || err != nil || strings.Count(out, "\n") != 1 {
		t.Fatalf("status %d, said %s, %v:\n%s", status, errs, err, out)
	}
	if r.Schema != 1 || r.Asked != "auto" || r.Nodes != 16 || r.OsUS != 3 || r.LUS != 17.5 || r.OrUS != 9.5 || r.GapUS != 9 ||
		len(r.Ranks) != 16 || len(r.Choices) == 0 || r.Choices[0].Algo != r.Algo || r.Choices[0].PredictedUS != r.PredictedUS || r.Choices[0].Frames != r.Frames {
		t.Errorf("%s", out)
	}
	tells := 0
	for _, rank := range r.Ranks {
		for _, s := range rank.Steps {
			tells += len(s.Notify)
		}
	}
	if tells != r.Frames {
		t.Errorf("%d messages in the steps, want %d", tells, r.Frames)
	}
	var value any
	_ = json.Unmarshal([]byte(out), &value) // it did above
	var walk func(any)
	walk = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, inner := range v {
				if !strings.Contains(string(doc), "`"+key+"`") {
					t.Errorf("%s is not in docs/barrier-show.md", key)
				}
				walk(inner)
			}
		case []any:
			for _, inner := range v {
				walk(inner)
			}
		}
	}
	walk(value)

	out, _, _ = command(t, "barrier", "show", "--algo", "tree:3", "--nodes", "9", "--rank", "3", "--json")
	if err := json.Unmarshal([]byte(out), &r); err != nil || len(r.Ranks) != 1 || r.Ranks[0].Rank != 3 {
		t.Errorf("%v: %s", err, out)
	}
}
