package topology

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// VIDs returns the VIDs of t's VLANs, ascending.
func (t *Topology) VIDs() []transport.VID {
	var vids []transport.VID
	for _, v := range t.VLANs {
		vids = append(vids, v.VID)
	}
	return vids
}

// LinkVIDs returns, for each link, the VIDs of the VLANs that it is in, ascending.
func (t *Topology) LinkVIDs() [][]transport.VID {
	vids := make([][]transport.VID, len(t.Links))
	for _, v := range t.VLANs {
		for _, l := range v.Links {
			vids[l] = append(vids[l], v.VID)
		}
	}
	return vids
}

// vidList formats ascending VIDs as switches take them: 1-4,7.
func FormatVIDs(vids []transport.VID) string {
	if len(vids) == 0 {
		return "none"
	}
	return strings.Join(vidRuns(vids), ",")
}

// vidRuns formats ascending VIDs as runs: 1-4 and 7.
func vidRuns(vids []transport.VID) []string {
	var runs []string
	for i := 0; i < len(vids); {
		end := i
		for end+1 < len(vids) && vids[end+1] == vids[end]+1 {
			end++
		}
		if end == i {
			runs = append(runs, fmt.Sprint(vids[i]))
		} else {
			runs = append(runs, fmt.Sprintf("%d-%d", vids[i], vids[end]))
		}
		i = end + 1
	}
	return runs
}

// runsPerLine is how many runs of VIDs a command has: the longest are 90 characters, and switches take 255.
const runsPerLine = 10

// vidLines formats ascending VIDs as lists that are short enough for a command each.
func vidLines(vids []transport.VID) []string {
	var lines []string
	for runs := range slices.Chunk(vidRuns(vids), runsPerLine) {
		lines = append(lines, strings.Join(runs, ","))
	}
	return lines
}
