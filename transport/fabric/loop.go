package fabric

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
)

// ErrLoop: a cable would make frames circulate for ever. A *LoopError says where.
var ErrLoop = errors.New("loop")

// LoopError names the loop that a cable would close. It is ErrLoop.
type LoopError struct {
	Tagged bool          // frames circulate with a tag
	VID    transport.VID // of that tag
	Path   []string      // the names of the devices passed; the last is the first again
}

func (e *LoopError) Error() string {
	what := "untagged frames"
	if e.Tagged {
		what = fmt.Sprintf("VID %d", e.VID)
	}
	return fmt.Sprintf("loop: %s would go round %s (let one of these cables carry other VIDs: fabric.Trunk)",
		what, strings.Join(e.Path, " - "))
}

// Is makes errors.Is(err, ErrLoop) hold.
func (e *LoopError) Is(target error) bool { return target == ErrLoop }

// visit is a frame entering a device by a port. Its destination and priority do not matter to where
// it may be flooded.
type visit struct {
	dev  *device
	port int
	tag  transport.OptionalTag
}

// findLoop looks for a loop through a new cable, one end of which is into; without it the fabric
// has none. It floods each kind of frame from both ends and sees whether the frame comes back.
func (f *Fabric) findLoop(into end) error {
	other := into.to.ends[into.port]
	for _, kind := range f.kinds() {
		for _, e := range []end{into, other} {
			kind.dev, kind.port = e.to, e.port
			if path := floodBack(kind); path != nil {
				return &LoopError{Tagged: kind.tag.Tagged, VID: kind.tag.Tag.VID, Path: path}
			}
		}
	}
	return nil
}

// kinds lists the kinds of frames that ports can treat differently: untagged (a priority tag goes
// the same way), each VID in a port's configuration, and one VID for all others.
func (f *Fabric) kinds() []visit {
	kinds := []visit{{}}
	other := false
	for vid := transport.VID(1); vid <= transport.MaxVID; vid++ {
		if f.named[vid] || !other {
			kinds = append(kinds, visit{tag: transport.Tagged(transport.Tag{VID: vid})})
			other = other || !f.named[vid]
		}
	}
	return kinds
}

// floodBack floods from start, depth first, and returns the names along the way back to it, or nil.
func floodBack(start visit) []string {
	seen := make(map[visit]bool)
	var names []string
	var flood func(v visit) bool
	flood = func(v visit) bool {
		names = append(names, v.dev.name)
		for _, e := range v.dev.fwd.Reach(v.port, v.tag, nil) {
			to := v.dev.ends[e.Port]
			if to.to == nil {
				continue
			}
			next := visit{to.to, to.port, e.OptionalTag}
			if next == start {
				names = append(names, start.dev.name)
				return true
			}
			if !seen[next] {
				seen[next] = true
				if flood(next) {
					return true
				}
			}
		}
		names = names[:len(names)-1]
		return false
	}
	if flood(start) {
		return slices.Clip(names)
	}
	return nil
}
