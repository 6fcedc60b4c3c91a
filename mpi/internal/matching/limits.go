package matching

// Bounds of a process' part.
const (
	// MaxOffers is how many receives are offered to one sender at a time. Those beyond are offered
	// as others complete.
	MaxOffers = 64
)
