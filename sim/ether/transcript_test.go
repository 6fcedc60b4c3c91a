package ether

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/internal/transcript"
	"github.com/rawlane/rawlane/transport"
)

// Each file of testdata is a story of transcript.World. The commands:
//
//	network SPEC        switches that know nobody
//	send FROM TO VID    a frame, by hand from switch to switch
func TestTranscripts(t *testing.T) {
	transcript.Test(t, "testdata/*.txt", func() transcript.World { return &story{} })
}

type story struct {
	w        *walker
	happened strings.Builder
}

// Happened implements transcript.World.
func (st *story) Happened() string {
	defer st.happened.Reset()
	return strings.TrimSuffix(st.happened.String(), "\n")
}

// Do implements transcript.World.
func (st *story) Do(words []string) (err error) {
	switch {
	case words[0] == "network" && len(words) == 2:
		st.w, err = newWalker(words[1])
	case words[0] == "send" && st.w != nil:
		var from, to int
		var vid transport.VID
		if _, err := fmt.Sscan(strings.Join(words[1:], " "), &from, &to, &vid); err != nil {
			return err
		}
		visits, hosts := st.w.send(from, to, vid)
		fmt.Fprintf(&st.happened, "%d->%d VID %d\n", from, to, vid)
		for _, v := range visits {
			fmt.Fprintf(&st.happened, "    %s\n", v.text(from, to))
		}
		fmt.Fprintf(&st.happened, "    comes to %s\n", strings.Trim(fmt.Sprint(hosts), "[]"))
	default:
		return fmt.Errorf("no such command, or no network yet")
	}
	return err
}
