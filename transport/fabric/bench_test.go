package fabric

import (
	"errors"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/rawlane/rawlane/transport"
)

// pairForBench returns two links on one switch which know of each other, and a frame of 64 bytes.
func pairForBench(b testing.TB) (from, to *Link, frame transport.Frame) {
	links, err := Links(2)
	if err != nil {
		b.Fatal(err)
	}
	for i, l := range links {
		if _, err := l.Send([]transport.Frame{{Dst: links[1-i].mac}}); err != nil {
			b.Fatal(err)
		}
		if n, _ := links[1-i].Poll(make([]transport.Frame, 1)); n != 1 {
			b.Fatal("no frame")
		}
	}
	return links[0], links[1], transport.Frame{Dst: links[1].mac, EtherType: transport.EtherTypeDefault, Payload: make([]byte, 50)}
}

// One goroutine sends a batch and polls it: the cost of both per frame.
func benchmarkSendPoll(b *testing.B, batch int) {
	from, to, frame := pairForBench(b)
	out, in := make([]transport.Frame, batch), make([]transport.Frame, batch)
	for i := range out {
		out[i] = frame
	}
	b.ReportAllocs()
	frames := 0
	for b.Loop() {
		if n, err := from.Send(out); n != batch {
			b.Fatal(n, err)
		}
		n, _ := to.Poll(in)
		frames += n
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(frames), "ns/frame")
}

func BenchmarkSendPoll_1(b *testing.B)  { benchmarkSendPoll(b, 1) }
func BenchmarkSendPoll_16(b *testing.B) { benchmarkSendPoll(b, 16) }

// The two apart: half a queue is sent, frame by frame, then polled.
func BenchmarkSendThenPoll(b *testing.B) {
	from, to, frame := pairForBench(b)
	const frames = DefaultQueueFrames / 2
	out, in := []transport.Frame{frame}, make([]transport.Frame, 1)
	var sending, polling time.Duration
	rounds := 0
	for b.Loop() {
		start := time.Now()
		for range frames {
			_, _ = from.Send(out)
		}
		middle := time.Now()
		for range frames {
			_, _ = to.Poll(in)
		}
		sending, polling = sending+middle.Sub(start), polling+time.Since(middle)
		rounds++
	}
	b.ReportMetric(float64(sending.Nanoseconds())/float64(rounds*frames), "ns/send")
	b.ReportMetric(float64(polling.Nanoseconds())/float64(rounds*frames), "ns/poll")
}

// A broadcast to 47 others, and their polls.
func BenchmarkBroadcast48(b *testing.B) {
	links, err := Links(48)
	if err != nil {
		b.Fatal(err)
	}
	out, in := []transport.Frame{{Dst: transport.Broadcast, Payload: make([]byte, 50)}}, make([]transport.Frame, 1)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := links[0].Send(out); err != nil {
			b.Fatal(err)
		}
		for _, l := range links[1:] {
			_, _ = l.Poll(in)
		}
	}
}

// Both of a pair send and poll at once: they meet at the fabric's lock.
func BenchmarkThroughput_BothWays(b *testing.B) {
	left, right, _ := pairForBench(b)
	var wg sync.WaitGroup
	for _, ends := range [][2]*Link{{left, right}, {right, left}} {
		wg.Go(func() {
			out, in := []transport.Frame{{Dst: ends[1].mac, Payload: make([]byte, 50)}}, make([]transport.Frame, 64)
			for sent, got := 0, 0; sent < b.N || got < b.N; {
				if sent < b.N {
					n, _ := ends[0].Send(out)
					sent += n
				}
				n, _ := ends[0].Poll(in)
				got += n
				if n == 0 && sent == b.N {
					runtime.Gosched()
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(2*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mframes/s")
}

func BenchmarkPollEmpty(b *testing.B) {
	_, to, _ := pairForBench(b)
	in := make([]transport.Frame, 16)
	for b.Loop() {
		_, _ = to.Poll(in)
	}
}

// Two goroutines: one sends single frames, one polls.
func BenchmarkThroughput(b *testing.B) {
	from, to, frame := pairForBench(b)
	out := []transport.Frame{frame}
	b.ReportAllocs()
	done := make(chan struct{})
	b.ResetTimer()
	go func() {
		defer close(done)
		in := make([]transport.Frame, 64)
		for got := 0; got < b.N; {
			n, err := to.Poll(in)
			if err != nil {
				b.Error(err)
				return
			}
			if got += n; n == 0 {
				runtime.Gosched()
			}
		}
	}()
	for range b.N {
		for {
			_, err := from.Send(out)
			if err == nil {
				break
			}
			if !errors.Is(err, transport.ErrBusy) {
				b.Fatal(err)
			}
			runtime.Gosched()
		}
	}
	<-done
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds()/1e6, "Mframes/s")
}

// Two goroutines answer each other; half of a round trip. Spinning, and asleep in Wait.
func BenchmarkPingPong_Poll(b *testing.B) {
	benchmarkPingPong(b, func(*Link) { runtime.Gosched() })
}

func BenchmarkPingPong_Wait(b *testing.B) {
	benchmarkPingPong(b, func(l *Link) { _ = l.Wait(b.Context()) })
}

func benchmarkPingPong(b *testing.B, idle func(*Link)) {
	left, right, _ := pairForBench(b)
	play := func(l *Link, to transport.MAC, serves bool) {
		out, in := []transport.Frame{{Dst: to, Payload: make([]byte, 50)}}, make([]transport.Frame, 1)
		for i := range b.N {
			if serves || i > 0 {
				_, _ = l.Send(out)
			}
			for n, _ := l.Poll(in); n == 0; n, _ = l.Poll(in) {
				idle(l)
			}
		}
		if !serves {
			_, _ = l.Send(out)
		}
	}
	b.ReportAllocs()
	b.ResetTimer()
	go play(right, left.mac, false)
	play(left, right.mac, true)
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(2*b.N), "ns/half")
}
