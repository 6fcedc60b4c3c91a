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

func (p *parser) algorithm() (Algorithm, error) {
	if p.depth++; p.depth > maxDepth {
		return Algorithm{}, fmt.Errorf("more than %d deep", maxDepth)
	}
	defer func() { p.depth-- }()
	word, err := p.word()
	if err != nil {
		return Algorithm{}, err
	}
	if make, ok := simple[word]; ok {
		return make(), nil
	}
	switch word {
	case "tree", "treetree":
		k, err := p.number(2, maxNumber)
		if err != nil {
			return Algorithm{}, err
		}
		if word == "tree" {
			return Tree(k), nil
		}
		return TreeTree(k), nil
	case "hier", "repeated":
		return p.hierarchy(word)
	case "stripe", "redundant":
		nics, err := p.number(1, MaxNICs)
		if err != nil {
			return Algorithm{}, err
		}
		a, err := p.algorithm()
		switch {
		case err != nil:
			return Algorithm{}, err
		case word == "stripe":
			return Stripe(a, nics), nil
		}
		return Redundant(a, nics), nil
	}
	return Algorithm{}, fmt.Errorf("there is no %q", word)
}

func (p *parser) hierarchy(word string) (Algorithm, error) {
	group, err := p.number(2, maxNumber)
	if err != nil {
		return Algorithm{}, err
	}
	if word == "hier" && len(p.words) == 0 {
		return Hierarchical(Star(), Tree(2), group), nil
	}
	inner, err := p.algorithm()
	if err != nil {
		return Algorithm{}, err
	}
	outer, err := p.algorithm()
	switch {
	case err != nil:
		return Algorithm{}, err
	case word == "hier":
		return Hierarchical(inner, outer, group), nil
	}
	return HierarchicalRepeated(inner, outer, group), nil
}
