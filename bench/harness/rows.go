//go:build linux

package harness

import (
	"math"
	"slices"
)

// Row is a line of a table: the result of each round.
type Row struct {
	Name   string
	Values []float64
	second []float64  // a second number of each round, if any
	paces  []pace     // of each round
	by     []*Variant // in whose turn each was added; nil outside of turns
	of     *Rows      // its table
}

// Rows are lines in the order of their first results.
type Rows []*Row

// Add adds the result of a round to the row with a name, and perhaps a second number.
func (t *Rows) Add(name string, value float64, second ...float64) {
	r := t.Find(name)
	if r == nil {
		r = &Row{Name: name, of: t}
		*t = append(*t, r)
	}
	r.Values = append(r.Values, value)
	r.second = append(r.second, second...)
	r.paces = append(r.paces, speed.take())
	r.by = append(r.by, speed.noteRow(r))
}

// dropBy removes what a variant has added, and the row if it has nothing else.
func (r *Row) dropBy(v *Variant) {
	for round := len(r.Values) - 1; round >= 0; round-- {
		if r.by[round] != v {
			continue
		}
		if len(r.second) == len(r.Values) {
			r.second = slices.Delete(r.second, round, round+1)
		}
		r.Values = slices.Delete(r.Values, round, round+1)
		r.paces = slices.Delete(r.paces, round, round+1)
		r.by = slices.Delete(r.by, round, round+1)
	}
	if len(r.Values) == 0 {
		*r.of = slices.DeleteFunc(*r.of, func(other *Row) bool { return other == r })
	}
}

// slowed counts the results that were slowed.
func (r *Row) slowed() (n int) {
	for _, p := range r.paces {
		if speed.isSlow(p) {
			n++
		}
	}
	return n
}

// Counts reports whether the result of a round counts: it was not slowed, or most of a row of the
// table were. What is compared is then slowed alike, and no median is that of few.
func (r *Row) Counts(round int) bool {
	return round >= len(r.paces) || !speed.isSlow(r.paces[round]) || !r.of.mostAreQuick()
}

// mostAreQuick reports whether half of each row's results, or more, were not slowed.
func (t *Rows) mostAreQuick() bool {
	return !slices.ContainsFunc(*t, func(r *Row) bool { return 2*r.slowed() > len(r.Values) })
}

// Counted returns the results that count.
func (r *Row) Counted() (values []float64) {
	for round, value := range r.Values {
		if r.Counts(round) {
			values = append(values, value)
		}
	}
	return values
}

// Find returns the row with a name; nil if it was left out.
func (t Rows) Find(name string) *Row {
	i := slices.IndexFunc(t, func(r *Row) bool { return r.Name == name })
	if i < 0 {
		return nil
	}
	return t[i]
}

// Drop removes the rows with such names.
func (t *Rows) Drop(names ...string) {
	*t = slices.DeleteFunc(*t, func(r *Row) bool { return slices.Contains(names, r.Name) })
}

// Rounds returns how many results count.
func (r *Row) Rounds() int { return len(r.Counted()) }

// Median returns the median of the results that count; NaN if the row was left out.
func (r *Row) Median() float64 {
	if r == nil {
		return math.NaN()
	}
	return median(r.Counted())
}

func median(values []float64) float64 {
	v := slices.Sorted(slices.Values(values))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// Second returns the median of the second numbers of the rounds whose results count. It need not be
// of the round that has the median result.
func (r *Row) Second() float64 {
	var values []float64
	for round, value := range r.second {
		if r.Counts(round) {
			values = append(values, value)
		}
	}
	return median(values)
}

// Min returns the lowest result that counts.
func (r *Row) Min() float64 { return slices.Min(r.Counted()) }

// Max returns the highest one.
func (r *Row) Max() float64 { return slices.Max(r.Counted()) }

// Over returns the median divided by that of another row; NaN if one of them was left out.
func (r *Row) Over(other *Row) float64 { return Over(r.Median(), other.Median()) }

// Over returns a result divided by another one. None of something, such as of messages that arrive,
// is 0 times as much as anything, also as none.
func Over(result, other float64) float64 {
	if result == 0 && other == 0 {
		return 0
	}
	return result / other
}
