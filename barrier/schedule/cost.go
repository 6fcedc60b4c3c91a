package schedule

import "time"

// LogP is the cost of a message by the LogP model: a send occupies the sender's processor for Os,
// the message is then L on its way, and occupies the receiver's processor for Or. Gap is the
// least time between the beginnings of two sends, or two receives, of one NIC.
//
// The other fields describe a cluster on one machine, where nodes share processors and a switch in
// software. If they are zero each node has a processor of its own.
//
// Source: MCD §5.1.1, and its references 10 and 11.
type LogP struct {
	Os, L, Or, Gap time.Duration

	Copy   time.Duration // of the sender's processor, for each receiver of a multicast after the first
	Cores  int           // processors that the nodes share; 0 is one each
	Switch time.Duration // of a shared processor, to turn from one node to another
}

// DefaultLogP is the cost of rawlane's ring link between processors of their own, without the
// wire, as "rawlane bench logp" measures it. Only its proportions matter to Auto.
var DefaultLogP = LogP{
	Os: 900 * time.Nanosecond, L: 2 * time.Microsecond, Or: 400 * time.Nanosecond, Gap: 900 * time.Nanosecond,
}

// Costs of a message between two nodes of one host, by what carries it. They fit the barriers of 4
// to 32 nodes on two cores (go run ./bench/barrier, and rawlane bench barrier for the other links).
var (
	// KernelCosts is a ring link on a software switch, whose work the sender's core does.
	KernelCosts = LogP{Os: 1440, L: 140, Or: 220, Copy: 400, Switch: 3200} // ns
	// PacketCosts is a packet link instead: its receiver pays more.
	PacketCosts = LogP{Os: 1440, L: 140, Or: 1100, Copy: 400, Switch: 3200}
	// MemoryCosts is an shm link: between processes, through memory.
	MemoryCosts = LogP{Os: 120, L: 10, Or: 180, Copy: 60, Switch: 2500}
	// FabricCosts is a fabric: between goroutines of one process.
	FabricCosts = LogP{Os: 350, L: 30, Or: 60, Copy: 80, Switch: 800}
)

// SharedCores is the cost of rawlane's ring link between processes on one machine that share so
// many cores: KernelCosts.
func SharedCores(cores int) LogP {
	p := KernelCosts
	p.Cores = cores
	return p
}

// Event is one message of a barrier in the model. Times are since all ranks entered.
type Event struct {
	From, To, NIC int // a multicast is one event for each receiver
	Label         uint8
	Begun         time.Duration // the send
	Left          time.Duration // the sender's NIC
	Arrived       time.Duration // at the receiver's NIC
	Handled       time.Duration // by the receiver
}

// Cost returns how long a barrier of that size takes by the model, from the entry of all ranks to
// the last exit. nics are the networks; where the algorithm uses more, the last one stands for
// the others. Cores and Switch are those of the first.
func (a Algorithm) Cost(size int, nics ...LogP) time.Duration {
	exits, _ := a.walk(size, nics, false)
	var last time.Duration
	for _, t := range exits {
		last = max(last, t)
	}
	return last
}

// Timeline returns when each rank leaves, and all messages in the order in which they are handled.
func (a Algorithm) Timeline(size int, nics ...LogP) (exits []time.Duration, events []Event) {
	return a.walk(size, nics, true)
}

func (a Algorithm) walk(size int, nics []LogP, record bool) ([]time.Duration, []Event) {
	if len(nics) == 0 {
		nics = []LogP{DefaultLogP}
	}
	w := newWalk(a.For(size), size, nics)
	w.record = record
	w.run()
	return w.exits, w.events
}
