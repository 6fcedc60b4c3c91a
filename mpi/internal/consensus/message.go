package consensus

// Kind is what a message says.
type Kind uint8

// The kinds.
const (
	State   Kind = iota + 1 // what its sender gives, and what was proposed to it
	Propose                 // Value is to be decided on
	Accept                  // the sender keeps what was proposed
	Decide                  // Value was decided on
)

// Contribution is what one process gives.
type Contribution struct {
	Flags        uint64
	Context      uint32 // for a new communicator
	Acknowledged Set    // failures that it has acknowledged
	Down         Set    // who is down to it: the core fills this in
}

// Value is what is decided on.
type Value struct {
	Flags          uint64 // the AND of all that were given
	Context        uint32 // that of the lowest rank that has given one; else 0
	Failed         Set    // who is out
	Unacknowledged Set    // of these, those that somebody has not acknowledged
}

// Message is what two processes tell each other. Fields that its kind does not name are zero.
type Message struct {
	Kind         Kind
	Number       uint32       // of the agreement, from 1
	Contribution Contribution // of State
	Round        uint32       // of State: who has proposed Value last, as its rank + 1; 0 is nobody
	Value        Value        // of State, if Round is not 0; of Propose and Decide
}

// Action is what a driver does.
type Action uint8

// The actions.
const (
	Send     Action = iota + 1 // Message to To
	Decided                    // the oldest Begin that has no outcome has come to Value
	Excluded                   // it, and all others, have none: the others go on without this process
)

// Output is an action with its arguments.
type Output struct {
	Do      Action
	To      int
	Message Message
	Value   Value
}
