package barrier

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
)

const (
	textWidth = 110 // columns of a phase's messages
	maxLines  = 5   // of one phase over one network
	gutter    = "   "
)

// micros writes a time in microseconds, exactly.
func micros(d time.Duration) string {
	return strconv.FormatFloat(float64(d)/float64(time.Microsecond), 'f', -1, 64) + "us"
}

// writeText writes the schedule phase by phase.
func (p *plan) writeText(w io.Writer) {
	fmt.Fprintf(w, "%s\n%s", p.headline(), p.choiceTable())
	if p.frames == 0 {
		fmt.Fprintln(w, "no messages: there is nobody to wait for")
	}
	cut := false
	for i, phase := range p.phases() {
		head := fmt.Sprintf("phase %-3d", i+1)
		if isRelease(phase) {
			head = "release  "
		}
		for nic := range p.networks {
			messages := onNetwork(phase, nic)
			if len(messages) == 0 {
				continue
			}
			if p.networks > 1 {
				head += fmt.Sprintf(" NIC %-2d", nic)
			}
			lines, left := wrap(arrows(messages))
			for _, line := range lines {
				fmt.Fprintf(w, "%s %s\n", head, line)
				head = strings.Repeat(" ", len(head))
			}
			head = "         "
			cut = cut || left > 0
		}
	}
	if cut {
		fmt.Fprintln(w, "abbreviated: --rank R shows all of one rank's steps, --json those of all")
	}
}

// wrap puts texts into lines: maxLines at most, and the number of texts that are left out.
func wrap(texts []string) (lines []string, left int) {
	var line string
	var inFirst int // texts
	for _, t := range texts {
		if line != "" && len(line)+len(gutter)+len(t) > textWidth {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += gutter
		}
		line += t
		if len(lines) == 0 {
			inFirst++
		}
	}
	lines = append(lines, line)
	if len(lines) <= maxLines {
		return lines, 0
	}
	left = len(texts) - inFirst
	return []string{lines[0], fmt.Sprintf("... and %d more like these, the last %s", left, texts[len(texts)-1])}, left
}

// writeRank writes one rank's steps.
func (p *plan) writeRank(w io.Writer, rank int) {
	fmt.Fprintf(w, "%s\nrank %d leaves at %s\n%s", p.headline(), rank, micros(p.exits[rank]), p.choiceTable())
	for i, s := range p.steps[rank] {
		var parts []string
		if len(s.Await) > 0 {
			var from []int
			for _, r := range s.Await {
				from = append(from, r.From)
			}
			parts = append(parts, "await "+ranks(from))
		}
		if len(s.Notify) > 0 {
			parts = append(parts, "notify "+p.receivers(s.Notify))
		}
		fmt.Fprintf(w, "step %-3d %s\n", i+1, strings.Join(parts, ", then "))
	}
	if len(p.steps[rank]) == 0 {
		fmt.Fprintln(w, "no steps: there is nobody to wait for")
	}
}

// receivers lists the receivers of a step in its order, and the networks if there are several.
func (p *plan) receivers(tells []schedule.Send) string {
	var parts []string
	for len(tells) > 0 {
		nic, all := tells[0].NIC, tells[0].To == schedule.All
		var to []int
		n := 0
		for n < len(tells) && tells[n].NIC == nic && (tells[n].To == schedule.All) == all {
			to = append(to, tells[n].To)
			n++
		}
		text := "all"
		if !all {
			text = ranks(to)
		}
		if p.networks > 1 {
			text += fmt.Sprintf(" over NIC %d", nic)
		}
		parts = append(parts, text)
		tells = tells[n:]
	}
	return strings.Join(parts, ", ")
}

// choiceTable lists the algorithms that auto has compared; "" without auto.
func (p *plan) choiceTable() string {
	if p.choices == nil {
		return ""
	}
	var b strings.Builder
	cost := "predicted"
	if p.estimated() {
		cost = "estimated"
	}
	fmt.Fprintf(&b, "%-24s %12s %8s\n", "  considered", cost, "frames")
	for i, c := range p.choices {
		mark := " "
		if i == 0 {
			mark = "*"
		}
		fmt.Fprintf(&b, "%s %-22v %12s %8d\n", mark, c.Algorithm, micros(c.Cost), c.Frames)
	}
	return b.String()
}
