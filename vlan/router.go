package vlan

import "github.com/rawlane/rawlane/transport"

// Router chooses the VLAN tag of frames by their destination. A sender asks it for each frame, so
// Route must be cheap, and safe to call from any goroutine. [Table] is the router whose answers can
// be changed.
type Router interface {
	Route(dst transport.MAC) transport.OptionalTag
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
