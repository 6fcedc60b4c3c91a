package barrier

import (
	"slices"

	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
)

// showSchema is the version of showResult as JSON. docs/barrier-show.md describes it.
const showSchema = 1

// showResult is a schedule as JSON.
type showResult struct {
	Schema      int          `json:"schema"`
	Asked       string       `json:"asked"`
	Algo        string       `json:"algo"`
	Nodes       int          `json:"nodes"`
	NICs        int          `json:"nics"`
	Frames      int          `json:"frames"`
	OsUS        float64      `json:"os_us"`
	LUS         float64      `json:"l_us"`
	OrUS        float64      `json:"or_us"`
	GapUS       float64      `json:"gap_us"`
	PredictedUS float64      `json:"predicted_us"`
	FirstExitUS float64      `json:"first_exit_us"`
	Choices     []showChoice `json:"choices,omitempty"`
	Ranks       []showRank   `json:"ranks"`
}

// showChoice is an algorithm that auto considered.
type showChoice struct {
	Algo        string  `json:"algo"`
	PredictedUS float64 `json:"predicted_us"`
	Frames      int     `json:"frames"`
}

// showRank is the part of one rank.
type showRank struct {
	Rank   int        `json:"rank"`
	ExitUS float64    `json:"exit_us"`
	Steps  []showStep `json:"steps"`
}

type showStep struct {
	Await  []showAwait  `json:"await"`
	Notify []showNotify `json:"notify"`
}

type showAwait struct {
	From  int   `json:"from"`
	Label uint8 `json:"label"`
}

type showNotify struct {
	To    int   `json:"to"`
	Label uint8 `json:"label"`
	NIC   int   `json:"nic"`
}

// result makes the JSON with the steps of all ranks, or of one.
func (p *plan) result(rank int) *showResult {
	us := cli.Micros
	r := &showResult{
		Schema: showSchema, Asked: p.asked, Algo: p.algorithm.String(),
		Nodes: p.nodes, NICs: p.networks, Frames: p.frames,
		OsUS: us(p.logp.Os), LUS: us(p.logp.L), OrUS: us(p.logp.Or), GapUS: us(p.logp.Gap),
		PredictedUS: us(p.predicted()), FirstExitUS: us(slices.Min(p.exits)),
	}
	for _, c := range p.choices {
		r.Choices = append(r.Choices, showChoice{c.Algorithm.String(), us(c.Cost), c.Frames})
	}
	for i, steps := range p.steps {
		if rank == anyRank || i == rank {
			r.Ranks = append(r.Ranks, showRank{i, us(p.exits[i]), showSteps(steps)})
		}
	}
	return r
}

// showSteps has empty lists in JSON, and no null.
func showSteps(steps []schedule.Step) []showStep {
	all := make([]showStep, len(steps))
	for i, s := range steps {
		all[i] = showStep{Await: []showAwait{}, Notify: []showNotify{}}
		for _, r := range s.Await {
			all[i].Await = append(all[i].Await, showAwait(r))
		}
		for _, t := range s.Notify {
			all[i].Notify = append(all[i].Notify, showNotify(t))
		}
	}
	return all
}
