//go:build linux

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

const (
	enginePackage   = "barrier/internal/engine"
	reliablePackage = "memfifo/internal/reliable"

	mutantCount = 67  // those of testdata/mutants.txt
	scriptCount = 150 // a round number of them below what the tree has
)

// layers are all units of the tree. docs/reliability.md says what each layer is for.
func layers(root string) ([]*unit, error) {
	targets, err := fuzzTargets(root)
	if err != nil {
		return nil, err
	}
	all := slices.Concat(simulations(), []*unit{
		{
			layer: "L3", name: "mutants", counts: "mutants",
			goals: [3]uint64{5, mutantCount, mutantCount}, pieces: [2]uint64{1, 1},
			work: workMutants, check: mutantsCaught,
		},
		{
			layer: "L4", name: "corpus", counts: "corpora",
			goals: [3]uint64{1, 1, 1}, pieces: [2]uint64{1, 1}, work: workCorpus,
		},
		{
			layer: "L5", name: "scripts", counts: "scripts",
			goals: [3]uint64{scriptCount, scriptCount, scriptCount}, pieces: [2]uint64{1, 1}, work: workScripts,
		},
		hostileUnit("with a key", true), hostileUnit("without a key", false),
		{
			layer: "L13", name: "builds", counts: "checks",
			goals: [3]uint64{0, uint64(len(checks)), uint64(len(checks))}, pieces: [2]uint64{1, 1}, work: workChecks,
		},
	}, soakUnits(), []*unit{
		gridUnit(2, 0), gridUnit(7, 6), gridUnit(13, 0), gridUnit(31, 0), deathsUnit(),
	})
	for _, t := range targets {
		all = append(all, t.unit())
	}
	return all, nil
}

// simulations are the units that run a core, or whole domains, in virtual time.
func simulations() []*unit {
	return []*unit{
		{
			layer: "L0", name: "barrier", counts: "states",
			goals: [3]uint64{1, 1, 1}, pieces: [2]uint64{1, 1},
			work: searched{enginePackage, "-search.nodes=3 -search.states=8000", "-search.nodes=4"}.work,
			pkg:  enginePackage,
		},
		{
			layer: "L0", name: "reliable", counts: "states",
			goals: [3]uint64{1, 1, 1}, pieces: [2]uint64{1, 1},
			work: searched{reliablePackage, "-search.states=3000", "-search.states=0"}.work, pkg: reliablePackage,
		},
		{
			layer: "L1", name: "barrier", counts: "barriers",
			goals: [3]uint64{10_000, 1_000_000, 10_000_000}, pieces: [2]uint64{30, 200},
			work: simulation(enginePackage).work, check: pointsHit, pkg: enginePackage,
		},
		{
			layer: "L1", name: "large clusters", counts: "large clusters",
			goals: [3]uint64{0, 8, 40}, pieces: [2]uint64{1, 1}, work: largeClusters.work, pkg: enginePackage,
		},
		{
			layer: "L1", name: "reliable", counts: "records",
			goals: [3]uint64{5_000_000, 50_000_000, 100_000_000}, pieces: [2]uint64{500, 2000},
			work: simulation(reliablePackage).work, check: pointsHit, pkg: reliablePackage,
		},
		{
			layer: "L1", name: "memfifo", counts: "operations",
			goals: [3]uint64{30_000, 1_000_000, 10_000_000}, pieces: [2]uint64{10, 200},
			work: modelTest.work, check: pointsHit, pkg: modelTest.pkg,
		},
		programs("matching", "mpi/internal/matching", "TestSimulation", "programs.seed", "programs", 2000, 30_000),
		programs("consensus", "mpi/internal/consensus", "TestSimulation", "programs.seed", "programs", 2000, 30_000),
		programs("messages", "mpi", "TestModel", "model.seed", "model.runs", 20, 1000),
		programs("multicasts", "mpi", "TestMulticast_Model", "model.seed", "model.runs", 20, 1000),
		programs("windows", "mpi", "TestWin_Model", "model.seed", "model.runs", 20, 1000),
		programs("agreements", "mpi", "TestAgree_Model", "agree.seed", "agree.runs", 20, 1000),
		{
			layer: "L9", name: "masks", counts: "pairs of masks",
			goals: [3]uint64{500, 100_000, 1_000_000}, pieces: [2]uint64{500, 10_000},
			work: masks.work, pkg: masks.pkg,
		},
		{
			layer: "L12", name: "detector", counts: "node-seconds",
			goals: [3]uint64{10_000, 1_000_000, 10_000_000}, pieces: [2]uint64{100, 5000},
			work: detector.work, check: detects, pkg: detector.pkg,
		},
	}
}

// programs are random ones of message passing, which are compared with a model: those of a core
// alone, and those of whole stacks, whose frames are lost, doubled, late and reordered.
func programs(name, pkg, test, seedFlag, runs string, few, piece uint64) *unit {
	s := seeded{pkg: pkg, test: test, seedFlag: seedFlag, runs: runs}
	return &unit{
		layer: "L1", name: name, counts: "programs",
		goals: [3]uint64{few, 100 * few, 1_000_000}, pieces: [2]uint64{few, piece}, work: s.work, pkg: pkg,
	}
}

// simulation is the simulated network of a core.
func simulation(pkg string) seeded {
	return seeded{pkg: pkg, test: "TestSimulation", seedFlag: "sim.seed", runs: "sim.runs"}
}

// largeClusters are barriers of 1,024 nodes: a seed is one cluster for each of some algorithms.
var largeClusters = seeded{
	pkg: enginePackage, test: "TestSimulation_Large", seedFlag: "large.seed", runs: "large.runs",
	flags: []string{"-large.nodes=1024"},
	limit: time.Hour, // deaths take minutes, and more where others work
}

// modelTest is clusters of domains in virtual time, with a model of their memory.
var modelTest = seeded{pkg: "memfifo", test: "TestModel", seedFlag: "model.seed", runs: "model.seeds"}

// masks is members of one number with masks of their own.
var masks = seeded{pkg: enginePackage, test: "TestMaskPairs", seedFlag: "masks.seed", runs: "masks.pairs"}

// detector is members that wait for one that is late, or dead.
var detector = seeded{pkg: enginePackage, test: "TestDetector", seedFlag: "detector.seed", runs: "detector.runs"}

// pointsHit is layer L2: drivers that err at marked points are of use if the points are reached. A
// run with --commit is too short for the plan's 1,000; it is enough there that no point is dead.
func pointsHit(figures map[string]uint64, p profile) error {
	often := uint64(1000)
	if p == commit {
		often = 1
	}
	var errs []error
	for name, n := range figures {
		if strings.HasPrefix(name, "point: ") && n < often {
			errs = append(errs, fmt.Errorf("%s was hit %d times (want %d at least)", name, n, often))
		}
	}
	return errors.Join(errs...)
}

// detects judges layer L12: at most one false accusation in 10^6 node-seconds, and 99 of 100 deaths
// are noticed within 5 peer timeouts.
func detects(figures map[string]uint64, _ profile) error {
	accused, seconds := figures["false accusations"], figures["node-seconds"]
	late, all := figures["detections after 5 timeouts"], figures["detections"]
	if accused > 1+seconds/1_000_000 || all == 0 || late*100 > all {
		return fmt.Errorf("%d false accusations in %d node-seconds, %d of %d deaths noticed after 5 timeouts "+
			"(want one in 10^6 at most, and one in 100)", accused, seconds, late, all)
	}
	return nil
}
