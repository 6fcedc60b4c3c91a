package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/mcd"
)

// The ports of a benchmark. Node 0 measures; the others answer it.
const (
	benchPing mcd.PortID = 200 // echoes messages
	benchData mcd.PortID = 201 // counts messages
)

// A request is one of these. The answer is how many messages were counted, in 8 bytes. Requests may
// be repeated.
const (
	askCount   byte = iota + 1
	askEnd          // the benchmark is over
	askNote         // stamp frames or no longer: a byte that is 0 or 1, and the number of the turn
	askRecords      // the records of the turn
)

// errEnd is what node 0 tells the others at its end.
var errEnd = errors.New("the benchmark is over")

// serve answers node 0 until node 0 ends the benchmark. With the name of an interface it echoes
// over IP, too.
func serve(ctx context.Context, n *node) error {
	ep := n.ep
	address, closeEcho, err := serveEcho(n.nic)
	if err != nil {
		return err
	}
	defer closeEcho()
	counted, sink := uint64(0), make([]byte, ep.MaxPayload())
	count := func(batch []mcd.Message, _ bool) {
		for i := range batch {
			copy(sink, batch[i].Payload) // as a program would
		}
		counted += uint64(len(batch))
	}
	if _, err := ep.OpenPort(benchData, mcd.PortOptions{Receive: count}); err != nil {
		return err
	}
	ping, err := ep.OpenPort(benchPing, mcd.PortOptions{})
	if err != nil {
		return err
	}
	serving, end := context.WithCancelCause(ctx)
	defer end(nil)
	records := &turnRecords{link: n.link}
	answer := func(from mcd.NodeID, request []byte) (answer []byte, ready bool) {
		if len(request) == 0 || from != 0 {
			return nil, false
		}
		switch request[0] {
		case askEnd:
			end(errEnd)
		case askNote, askRecords:
			return records.answer(request)
		}
		return binary.BigEndian.AppendUint64(nil, counted), true
	}
	x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{Answer: answer, PeerTimeout: launch.Silence})
	if err != nil {
		return err
	}
	if _, err = x.Gather(serving, 0, []byte(address)); err == nil {
		err = echo(serving, ping, records)
	}
	if ctx.Err() != nil || serving.Err() == nil {
		return err
	}
	return launch.Linger(ctx, ep, launch.LingerTime)
}

// silentTurns is how often in its patience with node 0 a node looks whether that is there.
const silentTurns = 6

// echo sends messages back, until the context ends or node 0 is silent for too long.
func echo(ctx context.Context, ping *mcd.Port, records *turnRecords) error {
	b := make([]byte, ping.Endpoint().MaxPayload())
	watch := standstill.Start(clock.Now(), launch.Silence/silentTurns)
	for silent := time.Duration(0); silent < launch.Silence; {
		before := ping.Endpoint().Counters().RxMessages
		turn, cancel := context.WithTimeout(ctx, launch.Silence/silentTurns)
		err := echoSome(turn, ping, b, records)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		silent += watch.Look(clock.Now())
		if ping.Endpoint().Counters().RxMessages != before {
			silent = 0
		}
	}
	return fmt.Errorf("node 0 has sent nothing for %v (has it ended?)", launch.Silence)
}

func echoSome(ctx context.Context, ping *mcd.Port, b []byte, records *turnRecords) error {
	for {
		n, from, err := ping.Recv(ctx, b)
		if err != nil {
			return err
		}
		noted, called := records.begin()
		if err := ping.Send(ctx, from, b[:n]); err != nil {
			return err
		}
		if noted {
			records.add(called, b[:n])
		}
	}
}
