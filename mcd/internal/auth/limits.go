package auth

import "time"

// Everything that a receiver remembers is bounded, and so is everything that it does for senders
// that have proved nothing.
const (
	// maxSenders is how many incarnations that have proved to be alive are remembered, at about 2.5
	// KiB each. Beyond it, the one that was silent for longest is forgotten: those of nodes that
	// were restarted, at first.
	maxSenders = 1 << 14
	// maxUnproven is how many others are remembered: asked, or silent.
	maxUnproven = 1 << 10
	// maxRetired is how many keys that are not valid any more are remembered.
	maxRetired = 64
	// maxAsks is how many challenges are open at once.
	maxAsks = 1 << 9
	// maxOrigins is to how many places one challenge is repeated besides: the last ones from which
	// frames of that address came.
	maxOrigins = 4
	// maxHeld is how many frames of one sender are kept until it answers. A peer sends about as
	// many during an exchange of two frames.
	maxHeld = 64
	// maxHeldBytes is how many bytes are kept in all: at 10 Gbit/s they come within 3.4 ms, by
	// which time one that is alive has answered, where the path is as fast.
	maxHeldBytes = 4 << 20

	// firstAsk is when a challenge is repeated; then after twice as long each time, to lastAsk,
	// until askLife is over. That is 22 times: at a loss of 20 % in each direction, one contact in
	// 10^9 fails.
	firstAsk = 5 * time.Millisecond
	lastAsk  = 80 * time.Millisecond
	// advanceInterval is how far apart two calls of Advance are, at least: a pass over all that is
	// remembered of strangers takes some 50 µs. It is shorter than firstAsk, so that nothing but
	// what is repeated comes later by it.
	advanceInterval = 2 * time.Millisecond
	// askLife is how long a challenge may be answered: a node that stands still for a moment can.
	askLife = 1500 * time.Millisecond
	// OpeningTime is how long an endpoint must have been there when its opening ends. See History.
	OpeningTime = 20 * time.Millisecond
	// checkpointInterval is how far apart the entries of a History are, at least.
	checkpointInterval = 4 * time.Millisecond
	// checkpoints is how many a History has: they reach back 2 s, for longer than askLife.
	checkpoints = 512
	// maxDrift bounds how fast two clocks drift apart: by 1 in so many. A crystal is off by 1 in
	// 10,000, and what steers it adds 1 in 2,000 at most.
	maxDrift = 1 << 10
	// preciseRTT is how long a challenge and its response may take together, if what was sent just
	// after the opening is to be accepted.
	preciseRTT = OpeningTime - checkpointInterval - time.Millisecond
	// impreciseAfter is when a slower response will do.
	impreciseAfter = 500 * time.Millisecond

	// silence is how long an incarnation that did not answer is not asked again.
	silence = time.Second

	// budgetRate bounds what is done a second of each of these: keys derived for incarnations that
	// have proved nothing (at 4 µs each this is 1 % of a core), challenges, responses to senders
	// that are known to be alive, and responses to others.
	budgetRate      = 2000
	derivationBurst = 1000
	askBurst        = 2000

	// LastCounter ends an incarnation: nothing is sealed or accepted beyond it. At 10^8 frames a
	// second it takes 2,900 years.
	LastCounter = 1 << 63
)

// bounds are how much one verifier remembers of each: the fuzzer's are small.
type bounds struct{ senders, unproven, retired, asks, held, heldBytes int }

func newBounds() bounds {
	return bounds{maxSenders, maxUnproven, maxRetired, maxAsks, maxHeld, maxHeldBytes}
}
