package matching

// Rank is the number of a process among all.
type Rank int32

// Wildcards of a Pattern.
const (
	AnySource Rank  = -1
	AnyTag    int32 = -1
)

// Envelope is what a message is matched by, with its size in bytes.
type Envelope struct {
	Context uint32 // of the communicator
	Tag     int32
	Size    int
}

// Pattern says which messages a receive or a probe takes.
type Pattern struct {
	Source  Rank // or AnySource
	Context uint32
	Tag     int32 // or AnyTag
}

// takes reports whether the pattern takes a message.
func (p *Pattern) takes(source Rank, e *Envelope) bool {
	return p.Context == e.Context && (p.Source == source || p.Source == AnySource) && p.takesTag(e.Tag)
}

func (p *Pattern) takesTag(tag int32) bool { return p.Tag == tag || p.Tag == AnyTag }

// overlaps reports whether there is a message that both take.
func (p *Pattern) overlaps(q *Pattern) bool {
	return p.Context == q.Context &&
		(p.Source == q.Source || p.Source == AnySource || q.Source == AnySource) &&
		(p.Tag == q.Tag || p.Tag == AnyTag || q.Tag == AnyTag)
}
