package pathtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// Options of a measurement or check. The zero Options are right for a local network.
type Options struct {
	// Count is how many probes Measure sends. 0 means DefaultCount.
	Count int
	// Size is a probe's payload in bytes. 0 means the shortest.
	Size int
	// Timeout is how long to wait for an answer. 0 means DefaultTimeout; less than a millisecond is
	// refused.
	Timeout time.Duration
}

// Defaults of Options.
const (
	DefaultCount   = 20
	DefaultTimeout = 200 * time.Millisecond

	minTimeout = time.Millisecond // in less the other node may answer late; most often the unit was forgotten
)

func (o *Options) setDefaults() error {
	if o.Count == 0 {
		o.Count = DefaultCount
	}
	if o.Timeout == 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Timeout < minTimeout {
		return fmt.Errorf("pathtest: Options.Timeout %v: want %v or more (a number without a unit is in nanoseconds)",
			o.Timeout, minTimeout)
	}
	return nil
}

// Measured is the result of Measure.
type Measured struct {
	Sent     int
	Answered int
	// RTT are the round-trip times of the answered probes, sorted.
	RTT []time.Duration
	// PeerReceivedTag and ReceivedTag are the tags with which the last answered probe arrived at
	// the peer, and its answer here.
	PeerReceivedTag, ReceivedTag transport.OptionalTag
}

// Alive reports whether any probe was answered.
func (m *Measured) Alive() bool { return m.Answered > 0 }

// Quantile returns the q-quantile of the round-trip times, or 0 if there are none.
func (m *Measured) Quantile(q float64) time.Duration {
	if len(m.RTT) == 0 {
		return 0
	}
	return m.RTT[int(q*float64(len(m.RTT)-1)+0.5)]
}

// Measure sends probes along a path, one after the other. After each it calls told, if not nil,
// with the reply or an error that is mcd.ErrNoAnswer. Errors: ctx's, and those of mcd.Endpoint.Ping
// except ErrNoAnswer; what was measured before is returned with them.
func Measure(
	ctx context.Context, ep *mcd.Endpoint, path mcd.Path, o Options, told func(mcd.PingReply, error),
) (m Measured, err error) {
	if err := o.setDefaults(); err != nil {
		return m, err
	}
	defer func() { slices.Sort(m.RTT) }()
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
	return m, nil
}

// EchoRate returns how many bytes a second a path carries in both directions at once. For about the
// given time it sends full frames that come back, a window of them under way, and counts the
// payloads of those that do. What is lost takes no time: a window's ends with its last answer.
func EchoRate(
	ctx context.Context, ep *mcd.Endpoint, path mcd.Path, o Options, during time.Duration,
) (bytesPerS float64, err error) {
	if err := o.setDefaults(); err != nil {
		return 0, err
	}
	c := collect(ep, o)
	defer c.stop()
	size := ep.MaxPayload()
	answered, took := 0, time.Duration(0)
	for end := clock.Now().Add(during); clock.Now().Before(end); {
		begun := clock.Now()
		numbers := make([]uint32, 0, probeWindow)
		for range probeWindow {
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
		took += c.forget().Sub(begun)
	}
	if answered == 0 {
		return 0, nil
	}
	return float64(answered*size) / max(took, 1).Seconds(), nil
}

// forget drops the answers so far, and returns when the last of them has come.
func (c *collector) forget() monotime.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.got)
	return c.last
}

// Sweep returns the tags, of those given, by which a node answers.
func Sweep(
	ctx context.Context, ep *mcd.Endpoint, node mcd.NodeID, nic int, tags []transport.OptionalTag, o Options,
) ([]transport.OptionalTag, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	c := collect(ep, o)
	defer c.stop()
	var probes []probe
	for _, tag := range tags {
		path := mcd.Path{Node: node, NIC: nic, OptionalTag: tag}
		probes = append(probes, probe{path, mcd.ProbeOptions{Size: o.Size}})
	}
	alive, err := c.answered(ctx, probes)
	if err != nil {
		return nil, err
	}
	var found []transport.OptionalTag
	for i, tag := range tags {
		if alive[i] {
			found = append(found, tag)
		}
	}
	return found, nil
}
