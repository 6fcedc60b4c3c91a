package attach

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/mcd"
)

// exchangePort of all nodes.
const exchangePort mcd.PortID = 200

// again is how often a node asks those whose text it lacks.
const again = 10 * time.Millisecond

// Exchange tells all other nodes a text, a key for instance, and returns all nodes' texts, by node, when all are here. Each node
// calls it, once. Messages may be lost: a node asks, with its own text, until it has the others', and answers whoever asks for as
// long as its endpoint is open. Let a barrier follow before that is closed.
func Exchange(ctx context.Context, e *mcd.Endpoint, text string) ([]string, error) {
	size := len(e.Nodes())
	const asks, answers = 'a', 'b'
	if longest := e.MaxPayload() - 1; len(text) > longest {
		return nil, fmt.Errorf("exchange: a text of %d bytes (at most %d)", len(text), longest)
	}
	var mu sync.Mutex // guards texts and here
	texts, here := make([]string, size), make([]bool, size)
	texts[e.Node()], here[e.Node()] = text, true
	complete := make(chan struct{})
	missing := func() bool { return slices.Contains(here, false) }
	if !missing() {
		return texts, nil
	}
	port := make(chan *mcd.Port, 1) // a message may come before OpenPort returns
	p, err := e.OpenPort(exchangePort, mcd.PortOptions{Receive: func(batch []mcd.Message, _ bool) {
		mu.Lock()
		defer mu.Unlock()
		for _, m := range batch {
			if k := int(m.From.Node); len(m.Payload) > 0 && k < size {
				if m.Payload[0] == asks {
					p := <-port
					port <- p
					_ = p.TrySend(m.NIC, mcd.To(m.From), append([]byte{answers}, text...)) // if it is lost it is asked for again
				}
				if !here[k] {
					texts[k], here[k] = string(m.Payload[1:]), true
					if !missing() {
						close(complete)
					}
				}
			}
		}
	}})
	if err != nil {
		return nil, err
	}
	port <- p
	for {
		if err := p.Broadcast(ctx, exchangePort, append([]byte{asks}, text...)); err != nil {
			return nil, err
		}
		select {
		case <-complete:
			return texts, nil
		case <-ctx.Done():
			return nil, fmt.Errorf("exchange: not all nodes have answered: %w", ctx.Err())
		case <-time.After(again):
		}
	}
}
