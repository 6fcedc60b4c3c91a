//go:build linux

package soak

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

// Sample is what the process has at one time.
type Sample struct {
	At                      time.Duration
	RSS                     uint64 // bytes
	Heap                    uint64 // bytes of objects that are in use
	Goroutines, Descriptors int
}

// samples takes nine of them, the first after a tenth of the time: pools have grown by then.
func samples(ctx context.Context, began time.Time, length time.Duration, measure func() Sample) (all []Sample) {
	for i := 1; i < 10; i++ {
		if !pause(ctx, time.Until(began.Add(time.Duration(i)*length/10))) {
			return all
		}
		s := measure()
		s.At = time.Since(began)
		all = append(all, s)
	}
	return all
}

func measure() Sample {
	runtime.GC() // and once more below: a pool keeps its objects for one collection
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	s := Sample{Goroutines: runtime.NumGoroutine(), Heap: m.HeapAlloc}
	var pages, resident uint64
	b, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Fscan(strings.NewReader(string(b)), &pages, &resident)
	}
	files, err2 := os.ReadDir("/proc/self/fd")
	if err := errors.Join(err, err2); err != nil {
		panic(err) // Linux has them
	}
	s.RSS, s.Descriptors = resident*uint64(os.Getpagesize()), len(files)
	return s
}

// Slope is how many bytes an hour some figure of the samples grows by, by least squares.
func Slope(all []Sample, figure func(*Sample) uint64) float64 {
	var n, t, m, tt, tm float64
	for i := range all {
		x, y := all[i].At.Hours(), float64(figure(&all[i]))
		n, t, m, tt, tm = n+1, t+x, m+y, tt+x*x, tm+x*y
	}
	if d := n*tt - t*t; d > 0 {
		return (n*tm - t*m) / d
	}
	return 0
}

// Heap is a sample's objects in use, in bytes.
func Heap(s *Sample) uint64 { return s.Heap }

// Resident is a sample's resident memory, in bytes.
func Resident(s *Sample) uint64 { return s.RSS }

// Leaks reports how many goroutines and descriptors the last sample has more than the first.
func Leaks(all []Sample) (goroutines, descriptors int) {
	if len(all) == 0 {
		return 0, 0
	}
	first, last := all[0], all[len(all)-1]
	return last.Goroutines - first.Goroutines, last.Descriptors - first.Descriptors
}
