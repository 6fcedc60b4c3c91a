// Package linktest is the conformance suite for links: it checks what package transport promises of
// a [transport.Link] on a real pair of them.
//
//	func TestLink(t *testing.T) {
//		linktest.TestLink(t, func(t *testing.T) (a, b transport.Link) {
//			// open two links on one segment that nobody else uses
//		})
//	}
//
// Every link of rawlane passes it, and so should yours. Each subtest opens a new pair and closes
// it.
//
// The suite never sleeps. That a frame does not arrive is shown by one sent behind it that does:
// frames keep their order on one path. What must happen may take ten seconds, for slow machines.
package linktest

import (
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// TestLink runs the suite. pair opens two links on one segment, with different addresses, an MTU of
// 64 or more, and room for 128 small frames in each receive queue. No frame may be lost on the
// segment, and nothing else may send frames of transport.EtherTypeDefault there. The suite closes
// the links; what else pair must undo belongs into t.Cleanup.
func TestLink(t *testing.T, pair func(*testing.T) (a, b transport.Link)) {
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			a, b := pair(t)
			t.Cleanup(func() {
				mustClose(t, a)
				mustClose(t, b)
			})
			for _, m := range []transport.MAC{a.MAC(), b.MAC()} {
				if m.IsMulticast() || m.IsZero() || a.MAC() == b.MAC() {
					t.Fatalf("the pair has addresses %v and %v, want two different station addresses", a.MAC(), b.MAC())
				}
			}
			c.run(t, a, b)
		})
	}
}

// cases is the suite, in the order in which to mend a new link.
var cases = []struct {
	name string
	run  func(t *testing.T, a, b transport.Link)
}{
	{"unicast arrives, both ways", unicast},
	{"broadcast arrives", broadcast},
	{"multicast arrives where joined", multicastJoined},
	{"multicast not joined is not seen", multicastNotJoined},
	{"joins are counted", joinsCounted},
	{"own frames are not seen", ownFrames},
	{"unicast for another is not seen", otherUnicast},
	{"source address is kept", sourceAddress},

	{"tags arrive as sent", tags},
	{"priority tag is not untagged", priorityTag},
	{"bad tags are refused", badTags},

	{"largest payload arrives whole", largestPayload},
	{"one byte more is refused", tooLarge},
	{"one byte more is refused inside a batch", tooLargeInBatch},
	{"short payloads are padded with zeros at most", padding},

	{"a batch keeps its order", batchOrder},
	{"poll fills a short slice", shortSlice},
	{"payloads are views until the next poll", viewsHold},
	{"sent payloads are the caller's again", payloadReuse},
	{"headroom changes nothing", headroom},
	{"headroom elsewhere is left alone", headroomElsewhere},
	{"an answer arrives as other frames do", answer},

	{"wait ends by arrival", waitArrival},
	{"wait sees what came before it", waitEarlyArrival},
	{"wait sees what a poll left", waitLeftOver},
	{"wait ends by deadline", waitDeadline},
	{"wait ends by cancel", waitCancel},
	{"wait ends by close", waitClose},

	{"masked wake-ups leave the waiter asleep", ifMasks(maskSleeps)},
	{"unmasking wakes the waiter", ifMasks(maskOff)},
	{"masked waiter is ended by close", ifMasks(maskClose)},
	{"a frame ends Sleep, and no Wait", ifSleeps(sleepWakes)},
	{"what Sleep has left ends Wait", ifSleeps(sleepAwake)},
	{"Interrupt ends Sleep", ifSleeps(sleepInterrupt)},
	{"masked wake-ups end no Sleep", ifSleeps(sleepMasked)},
	{"Sleep is ended by close", ifSleeps(sleepClose)},

	{"closed link says so", closedCalls},
	{"close twice", closeTwice},
	{"close under traffic", closeUnderTraffic},
	{"closed link stops no sender", closedPeer},

	{"counters add up", counters},
	{"refused frames are counted", countersRefused},
	{"send and poll do not allocate", noAllocs},
	{"many goroutines send", concurrentSend},
}
