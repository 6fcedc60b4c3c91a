package vlan

import "github.com/rawlane/rawlane/transport"

// Router chooses the tag for frames to an address.
//
// Route must be cheap and safe to call from any goroutine. A router whose answers change returns another
// Generation after each change; who caches routes asks again when it differs.
type Router interface {
	Route(dst transport.MAC) transport.OptionalTag
	Generation() uint64
}

// Counting is the ability of a Router to count what was sent by its routes; a [Table] has it.
//
// Counter returns where to count frames to dst that go by the present route; it is never nil. A sender keeps it together with the
// route for as long as Generation, asked first, stays the same.
type Counting interface {
	Router
	Counter(dst transport.MAC) *Count
}

// Untagged is the router that puts no tag on any frame.
var Untagged Router = fixed{}

// Fixed returns the router that puts tag on every frame, or an error if the tag is not valid.
func Fixed(tag transport.Tag) (Router, error) {
	if err := tag.Validate(); err != nil {
		return nil, err
	}
	return fixed{transport.Tagged(tag)}, nil
}

type fixed struct{ tag transport.OptionalTag }

func (f fixed) Route(transport.MAC) transport.OptionalTag { return f.tag }
func (fixed) Generation() uint64                          { return 0 }
