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
// way. Some of the ranks, as under a mask, stay in their chassis: see Subset.
//
// Without loss: 2(n-1) frames.
//
// Source: SCMD §4.
func Chassis() Algorithm {
	return Algorithm{
		name: "chassis", levels: true,
		in:  func(b *builder) { chassisTree(b).up(b) },
		out: func(b *builder) { chassisTree(b).down(b) },
	}
}

// ChassisRepeated is Chassis as the source has it, with full barriers inside each chassis: two in
// the root and in those at the low end, three in those between.
//
// Its cost is (4 + 3 Li) TIB + 3 (Li + 1) TSR at most, for Li levels of chassis between the root
// and the low end, where TIB is the barrier inside a chassis and TSR a message between two, and no
// gap is longer than six messages: the equation has no gap. Cost is less, by a quarter or more
// where both cost alike: while a Center waits for a message, Left and Right tell it that they are
// in the barrier behind that. With longer gaps those reports wait for each other, and the smallest
// tree, four chassis, may cost more than the equation has.
//
// Source: SCMD §4, figure 9; the cost §5.2, equation (2), whose closing parenthesis is misprinted.
func ChassisRepeated() Algorithm {
	return Algorithm{name: "chassis-repeated", levels: true, in: chassisRepeated}
}

// inChassis is the chassis. Of a subset they are those that have ranks, in the same order, and in
// each its first rank is the Center: a chassis below a rank that is missing is below the last one.
var inChassis = inRows(perChassis)

// seat is the ranks of other chassis that a rank exchanges messages with.
type seat struct {
	up   []int // of a Center: the rank above, if there is one
	down []int // the Centers of the chassis below
}

func seatOf(rank int, g grouping) (s seat) {
	chassis, index := g.of(rank)
	if index == 0 && chassis > 0 {
		above, at := (chassis-2)/2, 1+chassis%2
		if chassis <= perChassis {
			above, at = 0, chassis-1
		}
		s.up = []int{g.rank(above, min(at, g.size(above)-1))}
	}
	for at := firstBelow(chassis); at < perChassis; at++ {
		below := 2*chassis + 1 + at
		if below < g.groups() && index == min(at, g.size(chassis)-1) {
			s.down = append(s.down, g.rank(below, 0))
		}
	}
	return s
}

// firstBelow is the first place in a chassis that has another chassis below it: the Center of the
// root, Left of the others.
func firstBelow(chassis int) int { return min(chassis, 1) }

// chassisTree is the tree of chassis with each Center above the others of its chassis.
func chassisTree(b *builder) tree {
	_, g := inChassis.of(b)
	return func(rank, _ int) place {
		s, p := seatOf(rank, g), place{phases: 1}
		chassis, at := g.of(rank)
		if at > 0 {
			p.above = []link{{rank: g.rank(chassis, 0), spread: at - 1}}
		} else {
			for i := 1; i < g.size(chassis); i++ {
				p.below = append(p.below, link{rank: g.rank(chassis, i), spread: i - 1})
			}
		}
		for _, center := range s.up {
			p.above = []link{{rank: center}}
		}
		for i, center := range s.down {
			p.below = append(p.below, link{rank: center, spread: i})
		}
		return p
	}
}

// chassisRepeated follows the three procedures of figure 9: of the root, which has nothing above
// it, of the low end, which has nothing below it, and of the chassis between.
func chassisRepeated(b *builder) {
	_, g := inChassis.of(b)
	s := seatOf(b.rank, g)
	chassis, _ := g.of(b.rank)
	root, low := chassis == 0, 2*chassis+1+firstBelow(chassis) >= g.groups()
	inner := inChassis.within(sequence(flat.up, flat.down))
	first := b.label // messages between chassis have the first three labels
	const begin, ended, release = 0, 1, 2
	b.label += 3
	tell := func(ranks []int, label int) {
		for i, r := range ranks {
			b.notify(r, first+label, i)
		}
	}
	hear := func(ranks []int, label int) {
		for _, r := range ranks {
			b.await(r, first+label)
		}
	}

	hear(s.up, begin)
	inner(b)
	if !low {
		tell(s.down, begin)
		hear(s.down, ended)
		inner(b)
	} else {
		b.label += 2 // of the barrier that the other chassis have
	}
	tell(s.up, ended)
	hear(s.up, release)
	if !root {
		inner(b)
	} else {
		b.label += 2
	}
	tell(s.down, release)
}
