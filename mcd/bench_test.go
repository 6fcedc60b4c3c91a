package mcd_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rawlane/rawlane/mcd"
)

// BenchmarkPingPong is a round trip between two goroutine nodes over the fabric.
func BenchmarkPingPong(b *testing.B) {
	for _, size := range []int{4, 1400} {
		b.Run(fmt.Sprintf("%dB", size), func(b *testing.B) {
			es := open(b, 2, 1)
			p0, p1 := port(b, es[0], 1), port(b, es[1], 1)
			ctx, stop := context.WithCancel(context.Background())
			done := make(chan struct{})
			go func() {
				defer close(done)
				buf := make([]byte, size)
				for {
					n, from, err := p1.Recv(ctx, buf)
					if err != nil || p1.Send(ctx, from, buf[:n]) != nil {
						return
					}
				}
			}()
			buf := make([]byte, size)
			b.ReportAllocs()
			for b.Loop() {
				if err := p0.Send(ctx, p1.Addr(), buf); err != nil {
					b.Fatal(err)
				}
				if _, _, err := p0.Recv(ctx, buf); err != nil {
					b.Fatal(err)
				}
			}
			stop()
			<-done
		})
	}
}

// BenchmarkRate is messages from one goroutine node to the Receive function of another, over the
// fabric.
func BenchmarkRate(b *testing.B) {
	for _, batch := range []int{1, 32} {
		b.Run(fmt.Sprintf("batch%d", batch), func(b *testing.B) {
			es := open(b, 2, 1)
			var got atomic.Int64
			p1, err := es[1].OpenPort(1, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) { got.Add(int64(len(batch))) }})
			if err != nil {
				b.Fatal(err)
			}
			p0, ctx := port(b, es[0], 1), context.Background()
			ds := make([]*mcd.SendDesc, batch)
			for i := range ds {
				ds[i] = &mcd.SendDesc{To: mcd.To(p1.Addr()), Payload: make([]byte, 64)}
			}
			sent := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				if err := p0.PostSend(ds...); err != nil {
					b.Fatal(err)
				}
				for _, d := range ds {
					if err := d.Wait(ctx); err != nil {
						b.Fatal(err)
					}
				}
				sent += int64(batch)
			}
			for got.Load() < sent {
				es[0].Progress()
			}
			b.ReportMetric(float64(sent)/b.Elapsed().Seconds(), "msgs/s")
		})
	}
}

// BenchmarkManySenders is 2,000 goroutines that send 5 messages each to a node whose link holds 256.
func BenchmarkManySenders(b *testing.B) {
	const senders, each = 2000, 5
	es := open(b, 2, 1)
	p0 := port(b, es[0], 1)
	got, all := 0, make(chan struct{}, 1)
	p1, err := es[1].OpenPort(1, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		if got += len(batch); got == senders*each {
			got = 0
			all <- struct{}{}
		}
	}})
	if err != nil {
		b.Fatal(err)
	}
	payload := make([]byte, 64)
	for b.Loop() {
		var sent sync.WaitGroup
		for range senders {
			sent.Go(func() {
				for range each {
					if err := p0.Send(b.Context(), p1.Addr(), payload); err != nil {
						b.Error(err)
					}
				}
			})
		}
		sent.Wait()
		<-all
	}
}
