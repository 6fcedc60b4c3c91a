package schedule

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Names lists the names that Parse takes.
const Names = "shuffle, tree:K, treetree:K, concurrent, star, hier:G (or hier:G:INNER:OUTER), " +
	"repeated:G:INNER:OUTER, chassis, chassis-repeated, stripe:NICS:ALGO, redundant:NICS:ALGO, auto"

// maxNumber bounds K and G: no cluster has more nodes.
const maxNumber = 1 << 16

// Parse returns the algorithm with a name, as String returns it.
func Parse(name string) (Algorithm, error) {
	p := parser{words: strings.Split(name, ":")}
	a, err := p.algorithm()
	if err == nil && len(p.words) > 0 {
		err = fmt.Errorf("%q is too much", strings.Join(p.words, ":"))
	}
	if err != nil {
		return Algorithm{}, fmt.Errorf("algorithm %q: %w (there are: %s)", name, err, Names)
	}
	return a, nil
}

// parser takes words off the front.
type parser struct {
	words []string
	depth int
}

// maxDepth bounds the nesting of algorithms: each level takes labels.
const maxDepth = 8

var errEnd = errors.New("something is missing at its end")

func (p *parser) word() (string, error) {
	if len(p.words) == 0 {
		return "", errEnd
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w, nil
}

func (p *parser) number(least, most int) (int, error) {
	w, err := p.word()
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(w)
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%q: want a number of %d to %d", w, least, most)
	}
	return n, nil
}

// simple are the algorithms without parameters.
var simple = map[string]func() Algorithm{
	"shuffle":          Shuffle,
	"concurrent":       Concurrent,
	"star":             Star,
	"chassis":          Chassis,
	"chassis-repeated": ChassisRepeated,
	"auto":             func() Algorithm { return Auto() },
}

// family is the algorithms with a number, made of other algorithms.
type family struct {
	least, most int // the number's bounds
	of          int // how many algorithms follow
	make        func(n int, of []Algorithm) Algorithm
}

var families = map[string]family{
	"tree":      {2, maxNumber, 0, func(k int, _ []Algorithm) Algorithm { return Tree(k) }},
	"treetree":  {2, maxNumber, 0, func(k int, _ []Algorithm) Algorithm { return TreeTree(k) }},
	"stripe":    {1, MaxNICs, 1, func(nics int, of []Algorithm) Algorithm { return Stripe(of[0], nics) }},
	"redundant": {1, MaxNICs, 1, func(nics int, of []Algorithm) Algorithm { return Redundant(of[0], nics) }},
	"hier": {2, maxNumber, 2, func(group int, of []Algorithm) Algorithm {
		return Hierarchical(of[0], of[1], group)
	}},
	"repeated": {2, maxNumber, 2, func(group int, of []Algorithm) Algorithm {
		return HierarchicalRepeated(of[0], of[1], group)
	}},
}

func (p *parser) algorithm() (Algorithm, error) {
	if p.depth++; p.depth > maxDepth {
		return Algorithm{}, fmt.Errorf("more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	word, err := p.word()
	if err != nil {
		return Algorithm{}, err
	}
	if simple, ok := simple[word]; ok {
		return simple(), nil
	}
	f, ok := families[word]
	if !ok {
		return Algorithm{}, fmt.Errorf("there is no %q", word)
	}
	n, err := p.number(f.least, f.most)
	if err != nil {
		return Algorithm{}, err
	}
	if word == "hier" && len(p.words) == 0 {
		return Hierarchical(Star(), Tree(2), n), nil
	}
	of := make([]Algorithm, f.of)
	for i := range of {
		if of[i], err = p.algorithm(); err != nil {
			return Algorithm{}, err
		}
	}
	return f.make(n, of), nil
}
