// Package sim runs protocol cores in virtual time: an event queue, and a network of nodes with the
// costs of the LogP model. A second of a million nodes passes in as long as its events take to
// compute. The same seed and calls give the same run, always.
//
// A [Queue] holds functions and the instants at which they run. Nothing else moves time.
//
// A [Network] joins nodes of one processor and one or more NICs each:
//
//	        o_s            L             o_r
//	node 0 |####|---->
//	             \___ the wire, the NICs ___
//	                                        \-->|######| deliver(1, 0, nic, m)
//	node 1  ......other tasks, or none..............
//
//	two sends of a NIC   |####|..|####|        starts are Gap apart or more
//	                     |<-Gap->|
//	two arrive at once   |######|######|       the second waits for the processor
//	                            ^ deliver  ^ deliver
//
// A processor does one task at a time, first come, first served: sends and Work from when they are
// called, messages from when they reach the NIC. A task that waits for its NIC's gap lets no other
// pass. So what deliver sends goes out behind the messages that are waiting, and a message takes
// o_s + L + o_r if both processors are idle. Nodes run in parallel to each other.
//
// Guaranteed: without faults each message arrives once, and messages of one sender, receiver and
// NIC arrive in order. Not guaranteed, as on a real network: anything, once [Faults] are set, a
// node crashes or a pair is cut. Not modelled: bandwidth (a frame costs the same whatever its
// length), switches. Package ether models these. A receive ring that may be full is [Faults].Ring.
//
// Protocol cores do not know this package. A driver owns them: deliver calls Handle, a timer set
// with [Queue.At] calls Advance, and what they return goes to [Network.Send]. A Queue and its
// networks belong to one goroutine.
//
// Cost: 20 to 35 ns for an event in the queue, whether one waits or a million; with the network's
// own work 35 ns for a thousand nodes, 230 ns for a million that send at random (cache misses).
// Nothing is allocated once the queue has grown. Measured on one core by go test ./sim -run -
// -bench . -cpu 1.
//
// Source: LogP model (Culler and others, PPoPP 1993), as MCD §5.1.1 measures it: o_s 3 us, L 17.5
// us, o_r 9.5 us.
package sim
