// Package cpuset says which of the system's processors a process may run on, and in which order
// programs are to have them.
//
// Processors that are hardware threads of one core share what it has: where one spins, code of many
// branches takes 1.7 times as long on the other. Many virtual machines have them side by side, as
// processors 0 and 1.
package cpuset

import (
	"cmp"
	"fmt"
	"io/fs"
	"slices"
	"strings"
)

// processor is one of the system's, and tells which others are of the same core.
type processor struct {
	number int
	core   int // of those that may be used: 0, 1, ...
	thread int // of that core's: 0, 1, ...
}

// Allowed lists the processors that this process may run on: a thread of each core, then a second
// one, and so on. It is nil where the system does not tell.
func Allowed() []int { return spread(processors()) }

// Share lists the k-th of n parts of the processors that this process may run on: whole cores, if
// there are as many. It is nil if there are fewer processors.
func Share(k, n int) []int { return share(processors(), k, n) }

// Physical returns how many cores the processors are of that this process may run on.
func Physical() int { return physical(processors()) }

func spread(all []processor) []int {
	return numbers(slices.SortedStableFunc(slices.Values(all), func(a, b processor) int {
		return cmp.Compare(a.thread, b.thread)
	}))
}

func share(all []processor, k, n int) []int {
	if len(all) < n {
		return nil
	}
	if cores := physical(all); cores >= n {
		return numbers(slices.DeleteFunc(slices.Clone(all), func(p processor) bool { return p.core*n/cores != k }))
	}
	of := spread(all)
	return of[k*len(of)/n : (k+1)*len(of)/n]
}

func physical(all []processor) (n int) {
	for _, p := range all {
		n = max(n, p.core+1)
	}
	return n
}

func numbers(all []processor) (numbers []int) {
	for _, p := range all {
		numbers = append(numbers, p.number)
	}
	return numbers
}

// describe tells which cores processors are of, by what sysfs says of each: the list of its core's
// threads. Without that it has a core for itself.
func describe(sys fs.FS, allowed []int) (all []processor) {
	cores := make(map[string]int)
	threads := make(map[string]int)
	for _, number := range allowed {
		folder := fmt.Sprintf("devices/system/cpu/cpu%d/topology/", number)
		list, err := fs.ReadFile(sys, folder+"core_cpus_list")
		if err != nil { // before Linux 5.3
			list, err = fs.ReadFile(sys, folder+"thread_siblings_list")
		}
		key := strings.TrimSpace(string(list))
		if err != nil || key == "" {
			key = folder
		}
		core, known := cores[key]
		if !known {
			core = len(cores)
			cores[key] = core
		}
		all = append(all, processor{number: number, core: core, thread: threads[key]})
		threads[key]++
	}
	return all
}
