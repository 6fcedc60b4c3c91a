// Package sim runs protocol cores in virtual time: an event queue, and a network of nodes that
// cost what the LogP model says. A second of a million nodes passes in as long as its events take
// to compute, and the same seed and calls give the same run, for ever.
//
// A [Queue] holds functions and the instants at which they run. Nothing else moves time.
//
// A [Network] joins nodes of one processor and one or more NICs each:
//
//	        o_s            L             o_r
//	node 0 |####|---->
//	             \___ the wire, the NICs ___
//	                                        \-->|######| deliver(1, 0, nic, m)
//	node 1  ......does other things, or nothing..........
//
//	Send, twice          |####|..|####|        starts of one NIC's sends: Gap apart or more
//	                     |<-Gap->|
//	two arrive at once   |######|######|       the second waits for the processor
//	                            ^ deliver  ^ deliver
//
// A processor does one task at a time, in the order in which the tasks came: sends and Work when
// they are called, messages when they reach the NIC. A task that waits for its NIC's gap lets no
// other pass. So what deliver sends goes out behind the messages that were there already, and a
// message takes o_s + L + o_r if nobody else wants the two processors. Nodes run in parallel to
// each other.
//
// Guaranteed: without faults each message arrives once, and messages of one sender, receiver and
// NIC in order. Not guaranteed, as on a real network: anything, once [Faults] are set, a node
// crashes or a pair is cut. Not modelled: bandwidth (a frame costs the same whatever its length),
// switches, full receive rings.
//
// Protocol cores never see this package. A driver owns them: deliver calls Handle, a timer set
// with [Queue.At] calls Advance, and what they return goes to [Network.Send]. A Queue and what
// hangs on it belong to one goroutine.
//
// Cost: 20 to 35 ns an event in the queue, whether one waits or a million; with the network's own
// work 35 ns for a thousand nodes, 230 ns for a million that send at random (cache misses).
// Nothing is allocated once the most that wait at once have been. Measured on one core by go test
// ./sim -run - -bench . -cpu 1.
//
// Source: LogP model (Culler and others, PPoPP 1993), as MCD §5.1.1 measures it: o_s 3 us, L 17.5
// us, o_r 9.5 us.
package sim
