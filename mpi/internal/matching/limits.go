package matching

// Bounds of a process' part.
const (
	// MaxOffers is how many receives are offered to one sender at a time. Those beyond are offered
	// as others complete.
	MaxOffers = 64
	// maxEarlier is how many receives that are not offered an offered one may have before it: each
	// may overlap it, and is looked at. What is behind them is offered as they go.
	maxEarlier = 64
)
