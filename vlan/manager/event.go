package manager

import (
	"fmt"

	"github.com/rawlane/rawlane/vlan/manager/api"
)

// EventKind is the kind of an Event.
type EventKind int

// Kinds of events.
const (
	// EventLost: the manager is lost. The table stays in force; the session connects again by
	// itself.
	EventLost EventKind = iota + 1
	// EventBack: the session is connected again, and the manager has its pairs.
	EventBack
	// EventDropped: the manager has taken pairs of the session's back. A new plan lacks the node or
	// the VID, or the operator has reset them.
	EventDropped
	// EventUndrained: another source's change is in force though its drain failed. Messages may
	// have overtaken each other.
	EventUndrained
)

// String names the kind.
func (k EventKind) String() string {
	names := [...]string{EventLost: "lost", EventBack: "back", EventDropped: "dropped", EventUndrained: "undrained"}
	if k >= EventLost && int(k) < len(names) {
		return names[k]
	}
	return fmt.Sprintf("EventKind(%d)", int(k))
}

// Event reports what has happened to a session.
type Event struct {
	Kind    EventKind
	Err     error        // of EventLost and EventUndrained
	Changes []api.Change // of EventDropped
}

func (s *Session) event(e Event) {
	if s.dialer.OnEvent != nil {
		s.dialer.OnEvent(e)
	}
}
