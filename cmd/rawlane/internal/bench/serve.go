package bench

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/rawlane/rawlane/bench/gonet"
	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/mcd"
)

// The ports of a benchmark. Node 0 measures; the others answer it.
const (
	benchPing mcd.PortID = 200 // echoes messages
	benchData mcd.PortID = 201 // counts messages
)

// A request is a code. The answer is a value. Requests may be repeated.
const (
	askReady   byte = iota + 1 // are you there?
	askReset                   // begin to count
	askCount                   // how many messages were counted?
	askEnd                     // the benchmark is over
	askAddress                 // where do you echo by IP? 0: nowhere
)

const answerLen = 8

// benchServer answers node 0 on another node.
type benchServer struct {
	echo    *gonet.Server // nil without an IP address
	counted uint64
	sink    []byte
	end     func()
}

// serveBench answers node 0 until node 0 ends the benchmark. With the name of an interface it
// echoes over IP, too.
func serveBench(ctx context.Context, e *mcd.Endpoint, ifname string) error {
	serving, end := context.WithCancel(ctx)
	defer end()
	s := &benchServer{sink: make([]byte, e.MaxPayload()), end: end}
	var err error
	if s.echo, err = serveEcho(ifname); err != nil {
		return err
	}
	if s.echo != nil {
		defer func() { _ = s.echo.Close() }()
	}
	data, err := e.OpenPort(benchData, mcd.PortOptions{Receive: s.count})
	if err != nil {
		return err
	}
	defer func() { _ = data.Close() }()
	ping, err := e.OpenPort(benchPing, mcd.PortOptions{})
	if err != nil {
		return err
	}
	defer func() { _ = ping.Close() }()
	x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{Answer: s.answer})
	if err != nil {
		return err
	}
	defer func() { _ = x.Close() }()

	err = echo(serving, ping)
	if ctx.Err() == nil && errors.Is(err, context.Canceled) { // the end was told, and not forced
		return launch.Linger(ctx, e, launch.LingerTime)
	}
	return err
}

// echo sends messages back, until the context ends or node 0 is silent for too long.
func echo(ctx context.Context, ping *mcd.Port) error {
	b := make([]byte, ping.Endpoint().MaxPayload())
	for {
		before := ping.Endpoint().Counters().RxMessages
		turn, cancel := context.WithTimeout(ctx, launch.Silence)
		err := echoSome(turn, ping, b)
		cancel()
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
		if ping.Endpoint().Counters().RxMessages == before {
			return fmt.Errorf("node 0 has sent nothing for %v (has it ended?)", launch.Silence)
		}
	}
}

func echoSome(ctx context.Context, ping *mcd.Port, b []byte) error {
	for {
		n, from, err := ping.Recv(ctx, b)
		if err != nil {
			return err
		}
		if err := ping.Send(ctx, from, b[:n]); err != nil {
			return err
		}
	}
}

// count copies a message, as a program would, and counts it.
func (s *benchServer) count(batch []mcd.Message, _ bool) {
	for i := range batch {
		copy(s.sink, batch[i].Payload)
	}
	s.counted += uint64(len(batch))
}

// answer answers a request of node 0.
func (s *benchServer) answer(from mcd.NodeID, request []byte) (answer []byte, ready bool) {
	if len(request) != 1 || from != 0 {
		return nil, false
	}
	value := s.counted
	switch request[0] {
	case askReset:
		s.counted, value = 0, 0
	case askAddress:
		value = packAddress(s.echo)
	case askEnd:
		s.end()
	}
	return binary.BigEndian.AppendUint64(nil, value), true
}
