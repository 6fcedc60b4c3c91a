package schedule

// The tree of chassis of SCMD §4. A chassis is three ranks: Center, Left and Right. Chassis 0 is
// the root, with a chassis below each of its ranks. Each other chassis has two below it, at Left
// and Right:
//
//	     chassis 0:  C      L      R
//	                /       |       \
//	chassis 1: C L R   chassis 2   chassis 3        chassis c > 0 has 2c+2 and 2c+3 below it
//	             |  \
//	chassis 4: C L R  chassis 5
const perChassis = 3

// Chassis returns SCMD's barrier over a tree of chassis, each a group of three, in halves: the
// entries go up, from a chassis' Center to the rank above it, and the release comes down the same
// way.
//
// Without loss: 2(n-1) frames.
//
// Source: SCMD §4.
func Chassis() Algorithm {
	return Algorithm{name: "chassis", in: chassisIn, out: chassisOut}
}

// ChassisRepeated is Chassis as the source has it, with full barriers inside each chassis: two in
// the root and in those at the low end, three in those between.
//
// Source: SCMD §4, figure 9. Its cost there: (4 + 3 Li) TIB + 3 (Li + 1) TSR, for Li levels
// between.
func ChassisRepeated() Algorithm {
	return Algorithm{name: "chassis-repeated", whole: chassisRepeated}
}

// seat is a rank's place in the tree of chassis.
type seat struct {
	center, seats int // the Center of its chassis, and how many ranks are in it
	up            int // of a Center: the rank above; or none
	down          int // the Center of the chassis below; or none
}

const none = -1

func seatOf(rank, size int) seat {
	chassis, place := rank/perChassis, rank%perChassis
	s := seat{center: chassis * perChassis, up: none, down: none}
	s.seats = min(perChassis, size-s.center)
	below := 2*chassis + 1 + place // the Center, place 0, has a chassis below it in the root alone
	if chassis == 0 || place > 0 {
		if below < (size+perChassis-1)/perChassis {
			s.down = below * perChassis
		}
	}
	switch {
	case place > 0 || chassis == 0:
	case chassis <= perChassis:
		s.up = chassis - 1
	default:
		s.up = (chassis-2)/2*perChassis + 1 + chassis%2
	}
	return s
}

// inside writes a part for the ranks of the chassis.
func (s *seat) inside(b *builder, p part) {
	b.among(b.rank-s.center, s.seats, func(r int) int { return s.center + r }, p)
}

func chassisIn(b *builder) {
	s := seatOf(b.rank, b.size)
	s.half(b, s.down, gather, s.up)
}

func chassisOut(b *builder) {
	s := seatOf(b.rank, b.size)
	s.half(b, s.up, notifyEach, s.down)
}

// half awaits a rank of one chassis, runs a part inside its own, and notifies a rank of another.
func (s *seat) half(b *builder, from int, p part, to int) {
	if from != none {
		b.await(from, b.label)
	}
	s.inside(b, p)
	if to != none {
		b.notify(to, b.label-1, 0)
	}
}

// chassisRepeated follows the three procedures of figure 9: of the root, which has nothing above
// it, of the low end, which has nothing below it, and of the chassis between.
func chassisRepeated(b *builder) {
	s := seatOf(b.rank, b.size)
	inner := func() { s.inside(b, sequence(gather, notifyEach)) }
	first := b.label // messages between chassis have the first three labels
	const begin, ended, release = 0, 1, 2
	b.label += 3
	above, below := s.up != none, s.down != none
	root, low := b.rank < perChassis, isLow(b.rank/perChassis, b.size)

	if above {
		b.await(s.up, first+begin)
	}
	inner()
	if !low {
		if below {
			b.notify(s.down, first+begin, 0)
			b.await(s.down, first+ended)
		}
		inner()
	} else {
		b.label += 2 // of the barrier that the other chassis have
	}
	if above {
		b.notify(s.up, first+ended, 0)
		b.await(s.up, first+release)
	}
	if !root {
		inner()
	} else {
		b.label += 2
	}
	if below {
		b.notify(s.down, first+release, 0)
	}
}

// isLow reports whether no chassis is below a chassis.
func isLow(chassis, size int) bool {
	first := 2*chassis + 2 // of those below
	if chassis == 0 {
		first = 1
	}
	return first*perChassis >= size
}
