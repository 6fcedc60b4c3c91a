package pathtest

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// Options of a measurement or check. The zero Options are right for a local network.
type Options struct {
	// Count is how many probes measure a path's length. 0: 20.
	Count int
	// Size is how long they are, in bytes of payload. 0: as short as they can be.
	Size int
	// Timeout is how long an answer is awaited. 0: 200 ms.
	Timeout time.Duration
}

// Defaults of Options.
const (
	DefaultCount   = 20
	DefaultTimeout = 200 * time.Millisecond
)

func (o *Options) setDefaults() {
	if o.Count == 0 {
		o.Count = DefaultCount
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
}

// Measured is what a path came to.
type Measured struct {
	Sent     int
	Answered int
	// RTT are the round trips of those that were answered, sorted.
	RTT []time.Duration
	// PeerReceivedTag and ReceivedTag are the tags with which the last probe arrived there and its answer here.
	PeerReceivedTag, ReceivedTag transport.OptionalTag
}

// Alive reports whether any probe was answered.
func (m *Measured) Alive() bool { return m.Answered > 0 }

// Quantile returns the round trip that a share q of those that were answered did not take longer than; 0 if none was.
func (m *Measured) Quantile(q float64) time.Duration {
	if len(m.RTT) == 0 {
		return 0
	}
	return m.RTT[int(q*float64(len(m.RTT)-1)+0.5)]
}

// Measure sends probes along a path, one after the other. Each, told if it is not nil, is told of: its round trip, or an error that is
// mcd.ErrNoAnswer. Errors: ctx's, and those of mcd.Endpoint.Ping but ErrNoAnswer.
func Measure(ctx context.Context, ep *mcd.Endpoint, path mcd.Path, o Options, told func(mcd.PingReply, error)) (Measured, error) {
	o.setDefaults()
	var m Measured
	for range o.Count {
		turn, cancel := context.WithTimeout(ctx, o.Timeout)
		reply, err := ep.Ping(turn, path, mcd.ProbeOptions{Size: o.Size})
		cancel()
		if ctx.Err() != nil {
			return m, ctx.Err()
		}
		if err != nil && !errors.Is(err, mcd.ErrNoAnswer) {
			return m, err
		}
		m.Sent++
		if err == nil {
			m.Answered++
			m.RTT = append(m.RTT, reply.RTT)
			m.PeerReceivedTag, m.ReceivedTag = reply.PeerReceivedTag, reply.ReceivedTag
		}
		if told != nil {
			told(reply, err)
		}
	}
	slices.Sort(m.RTT)
	return m, nil
}

// echoWindow is how many probes are on their way at once when a path's rate is measured: fewer than any receiver has room for.
const echoWindow = 32

// EchoRate returns how many bytes a second a path carries in each direction at once: payloads of full frames that are sent and come
// back, a window of them on the way, for about the given time. Lost ones count as not carried. It is 0 if none comes back.
func EchoRate(ctx context.Context, ep *mcd.Endpoint, path mcd.Path, o Options, during time.Duration) (bytesPerS float64, err error) {
	o.setDefaults()
	c := collect(ep, o)
	defer c.stop()
	size := ep.MaxPayload()
	answered := 0
	start := time.Now()
	for time.Since(start) < during {
		numbers := make([]uint32, 0, echoWindow)
		for range echoWindow {
			n, err := c.send(ctx, path, mcd.ProbeOptions{Size: size})
			if err != nil {
				return 0, err
			}
			numbers = append(numbers, n)
		}
		if err := c.await(ctx, o.Timeout, numbers...); err != nil {
			return 0, err
		}
		before := answered
		for _, n := range numbers {
			answered += min(1, len(c.answers(n)))
		}
		if answered == before {
			break // nothing comes back
		}
		c.forget()
	}
	return float64(answered*size) / time.Since(start).Seconds(), nil
}

// forget drops what was kept of probes so far.
func (c *collector) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.got)
}

// Sweep returns those of the given tags by which a node answers, in their order.
func Sweep(ctx context.Context, ep *mcd.Endpoint, node mcd.NodeID, nic int, tags []transport.OptionalTag, o Options) ([]transport.OptionalTag, error) {
	o.setDefaults()
	c := collect(ep, o)
	defer c.stop()
	alive := make([]bool, len(tags))
	for range tries {
		numbers := make(map[int]uint32)
		var last []uint32
		for i, tag := range tags {
			if alive[i] {
				continue
			}
			n, err := c.send(ctx, mcd.Path{Node: node, NIC: nic, OptionalTag: tag}, mcd.ProbeOptions{Size: o.Size})
			if err != nil {
				return nil, err
			}
			numbers[i] = n
			last = append(last, n)
			if len(last)%echoWindow == 0 { // not more at once than there is room for at the other end
				if err := c.await(ctx, time.Millisecond, last[len(last)-echoWindow:]...); err != nil {
					return nil, err
				}
			}
		}
		if err := c.await(ctx, o.Timeout, last...); err != nil {
			return nil, err
		}
		for i, n := range numbers {
			alive[i] = len(c.answers(n)) > 0
		}
	}
	var found []transport.OptionalTag
	for i, tag := range tags {
		if alive[i] {
			found = append(found, tag)
		}
	}
	return found, nil
}

// tries is how many probes a path gets before it is called dead: one may be lost by chance.
const tries = 3
