package matching

// Kind is what a record says.
type Kind uint8

// The kinds. ID is the number of the send in the first three, and of the receive in the others.
const (
	Eager     Kind = iota + 1 // a message with its bytes; ID is 0 unless the sender wants Matched
	Request                   // a message whose bytes are to be read at the sender: request to send
	Matched                   // the message went into a receive, and its bytes were read
	Offer                     // a receive of Size bytes, which the sender may write into
	Done                      // it did: a message of Size bytes, or nothing if that is too long
	Withdraw                  // the receive was cancelled: is the offer still there?
	Withdrawn                 // it was, and is no more
	Credit                    // Headers and Bytes more
	Waiting                   // sends wait for credit
	Gone                      // the driver's: who sends it takes the other process for down
)

// Memory says where the bytes of a send are, or of a receive that is offered. It is the driver's.
type Memory struct {
	Window uint16
	Secret uint64
}

// Record is what two processes tell each other. The fields that its kind does not name are zero.
type Record struct {
	Kind Kind
	Envelope
	ID      uint64
	Seen    uint32 // of Offer and Credit: how many messages of the other side were taken
	More    bool   // of Eager and Request: sends wait behind it
	Dropped bool   // of Matched: the message went into no receive, and will not
	Headers int    // of Credit
	Bytes   int    // of Credit
	Memory  Memory // of Request and Offer: the driver writes it
}

// Action is what a driver does.
type Action uint8

// The actions.
const (
	Push            Action = iota + 1 // Record to To; of Eager with the bytes of Send
	Write                             // the bytes of Send to Memory, unless they are over Capacity; then Record to To
	Deliver                           // copies the bytes of Message into Receive, which is complete
	Fetch                             // reads the bytes of Record at their sender, To, into Receive; then Fetched
	Keep                              // copies the bytes of Message, which is kept
	CompleteSend                      // Send is
	DropSend                          // its message was dropped: nobody will receive it
	CompleteReceive                   // Receive is: Message has its envelope
	CancelReceive                     // Receive was cancelled
	FailSend                          // its receiver is down
	FailReceive                       // its sender is down
)

// Output is an action with its arguments.
type Output struct {
	Do       Action
	To       Rank
	Record   Record
	Memory   Memory // of Write: the receive's
	Capacity int    // likewise, in bytes
	Send     *Send
	Receive  *Receive
	// Message of Keep is valid until Release; that of Deliver, if it was kept, likewise; any other
	// until the next call of the engine.
	Message *Message
}
