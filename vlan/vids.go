package vlan

import (
	"fmt"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// vidList formats ascending VIDs as switches take them: 1-4,7.
func vidList(vids []transport.VID) string {
	if len(vids) == 0 {
		return "none"
	}
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
	return strings.Join(runs, ",")
}
