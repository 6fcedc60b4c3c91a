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
	return Algorithm{name: "chassis", in: tree(chassisTree).up, out: tree(chassisTree).down}
}

// ChassisRepeated is Chassis as the source has it, with full barriers inside each chassis: two in
// the root and in those at the low end, three in those between.
//
// Source: SCMD §4, figure 9. Its cost there: (4 + 3 Li) TIB + 3 (Li + 1) TSR, for Li levels
// between.
func ChassisRepeated() Algorithm {
	return Algorithm{name: "chassis-repeated", in: chassisRepeated}
}

// seat is the ranks of other chassis that a rank exchanges messages with.
type seat struct {
	up   int // of a Center: the rank above; or none
	down int // the Center of the chassis below; or none
}

const none = -1

func seatOf(rank, size int) seat {
	chassis, place := rank/perChassis, rank%perChassis
	s := seat{up: none, down: none}
	below := 2*chassis + 1 + place // the Center, place 0, has a chassis below it in the root alone
	if (chassis == 0 || place > 0) && below*perChassis < size {
		s.down = below * perChassis
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

// chassisTree is the tree of chassis with each Center above the others of its chassis.
func chassisTree(rank, size int) place {
	s, p := seatOf(rank, size), place{phases: 1}
	if at := rank % perChassis; at > 0 {
		p.above = []link{{rank: rank - at, spread: at - 1}}
	} else {
		for r := 1; r < min(perChassis, size-rank); r++ {
			p.below = append(p.below, link{rank: rank + r, spread: r - 1})
		}
	}
	if s.up != none {
		p.above = []link{{rank: s.up}}
	}
	if s.down != none {
		p.below = append(p.below, link{rank: s.down})
	}
	return p
}

// chassisRepeated follows the three procedures of figure 9: of the root, which has nothing above
// it, of the low end, which has nothing below it, and of the chassis between.
func chassisRepeated(b *builder) {
	s := seatOf(b.rank, b.size)
	inner := within(perChassis, sequence(flat.up, flat.down))
	first := b.label // messages between chassis have the first three labels
	const begin, ended, release = 0, 1, 2
	b.label += 3
	above, below := s.up != none, s.down != none
	root, lowest := b.rank < perChassis, b.rank/perChassis*perChassis
	if !root {
		lowest++ // Left is the first to have a chassis below it; in the root it is the Center
	}
	low := seatOf(lowest, b.size).down == none

	if above {
		b.await(s.up, first+begin)
	}
	inner(b)
	if !low {
		if below {
			b.notify(s.down, first+begin, 0)
			b.await(s.down, first+ended)
		}
		inner(b)
	} else {
		b.label += 2 // of the barrier that the other chassis have
	}
	if above {
		b.notify(s.up, first+ended, 0)
		b.await(s.up, first+release)
	}
	if !root {
		inner(b)
	} else {
		b.label += 2
	}
	if below {
		b.notify(s.down, first+release, 0)
	}
}
