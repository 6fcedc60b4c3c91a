package schedule

import (
	"fmt"
	"strconv"
	"strings"
)

// Names lists the names that Parse takes.
const Names = "shuffle, tree:K, treetree:K, heap:K, concurrent, star, offload, hier:G (or hier:G:INNER:OUTER), " +
	"repeated:G:INNER:OUTER, chassis, chassis-repeated, stripe:NICS:ALGO, redundant:NICS:ALGO, " +
	"auto, auto:CORES"

// maxNumber bounds K and G: no cluster has more nodes.
const maxNumber = 1 << 16

// Parse returns the algorithm with a name, as String returns it.
func Parse(name string) (Algorithm, error) {
	p := parser{words: strings.Split(name, ":")}
	a := p.algorithm()
	if len(p.words) > 0 {
		p.fail("%q is too much", strings.Join(p.words, ":"))
	}
	if p.err != nil {
		return Algorithm{}, fmt.Errorf("algorithm %q: %w (there are: %s)", name, p.err, Names)
	}
	return a, nil
}

// parser takes words off the front. After an error it goes on with values that are valid.
type parser struct {
	words []string
	depth int
	err   error // the first
}

// maxDepth bounds the nesting of algorithms: each level takes labels.
const maxDepth = 8

func (p *parser) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

func (p *parser) word() string {
	if len(p.words) == 0 {
		p.fail("something is missing at its end")
		return ""
	}
	w := p.words[0]
	p.words = p.words[1:]
	return w
}

func (p *parser) number(least, most int) int {
	w := p.word()
	n, err := strconv.Atoi(w)
	if err != nil || n < least || n > most {
		p.fail("%q: want a number of %d to %d", w, least, most)
		return least
	}
	return n
}

func (p *parser) algorithm() Algorithm {
	if p.depth++; p.depth > maxDepth {
		p.fail("more than %d deep", maxDepth)
		return Algorithm{}
	}
	defer func() { p.depth-- }()
	switch word := p.word(); word {
	case "shuffle":
		return Shuffle()
	case "concurrent":
		return Concurrent()
	case "star":
		return Star()
	case "offload":
		return Offload()
	case "chassis":
		return Chassis()
	case "chassis-repeated":
		return ChassisRepeated()
	case "auto":
		if len(p.words) > 0 && p.words[0] != "" && p.words[0][0] >= '0' && p.words[0][0] <= '9' {
			return AutoShared(p.number(1, maxNumber))
		}
		return Auto()
	case "tree":
		return Tree(p.number(2, maxNumber))
	case "treetree":
		return TreeTree(p.number(2, maxNumber))
	case "heap":
		return Heap(p.number(2, maxNumber))
	case "stripe":
		nics := p.number(1, MaxNICs)
		return Stripe(p.algorithm(), nics)
	case "redundant":
		nics := p.number(1, MaxNICs)
		return Redundant(p.algorithm(), nics)
	case "hier":
		group := p.number(2, maxNumber)
		if len(p.words) == 0 {
			return Hierarchical(Star(), Tree(2), group)
		}
		return Hierarchical(p.algorithm(), p.algorithm(), group)
	case "repeated":
		group := p.number(2, maxNumber)
		return HierarchicalRepeated(p.algorithm(), p.algorithm(), group)
	default:
		p.fail("there is no %q", word)
		return Algorithm{}
	}
}
