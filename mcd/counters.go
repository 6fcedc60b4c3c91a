package mcd

import "sync/atomic"

// Counters of an endpoint. The drops are by cause, as docs/wire-format.md lists them.
type Counters struct {
	TxMessages uint64 `json:"tx_messages"`
	TxBytes    uint64 `json:"tx_bytes"` // of payloads
	RxMessages uint64 `json:"rx_messages"`
	RxBytes    uint64 `json:"rx_bytes"`

	DropShort    uint64 `json:"drop_short"`     // fewer bytes than a header
	DropVersion  uint64 `json:"drop_version"`   // another wire version
	DropLength   uint64 `json:"drop_length"`    // the header tells of more bytes than came
	DropChecksum uint64 `json:"drop_checksum"`  // changed on the way
	DropKind     uint64 `json:"drop_kind"`      // unknown kind
	DropType     uint64 `json:"drop_type"`      // another EtherType
	DropCluster  uint64 `json:"drop_cluster"`   // another cluster's
	DropNode     uint64 `json:"drop_node"`      // for another node
	DropGroup    uint64 `json:"drop_group"`     // for a group that was not joined
	DropSource   uint64 `json:"drop_source"`    // a node's number from an address that is not the node's
	DropNoPort   uint64 `json:"drop_no_port"`   // nobody owns the port here
	DropNoBuffer uint64 `json:"drop_no_buffer"` // the port had neither a posted buffer nor backlog left
	DropProbe    uint64 `json:"drop_probe"`     // a probe that is too short, or that was sent to a group

	RxProbes         uint64 `json:"rx_probes"`         // that asked this node
	ProbesAnswered   uint64 `json:"probes_answered"`   // of them
	ProbesUnanswered uint64 `json:"probes_unanswered"` // of them, since the link had no room for the answer, or none for its tag
	RxAnswers        uint64 `json:"rx_answers"`        // to probes of this node
}

// PortCounters of one port.
type PortCounters struct {
	TxMessages   uint64 `json:"tx_messages"`
	TxBytes      uint64 `json:"tx_bytes"`
	RxMessages   uint64 `json:"rx_messages"`
	RxBytes      uint64 `json:"rx_bytes"`
	DropNoBuffer uint64 `json:"drop_no_buffer"`
}

// drop is a cause for which the receive path drops a message.
type drop uint8

const (
	dropShort drop = iota
	dropVersion
	dropLength
	dropChecksum
	dropKind
	dropType
	dropCluster
	dropNode
	dropGroup
	dropSource
	dropNoPort
	dropProbe
	drops
)

// tally counts. Each is written by one goroutine at a time (the one that polls, or the one that holds the
// port's lock) and read by any: so a plain store does, at 1 ns, where an atomic addition costs 5.
type tally struct{ n atomic.Uint64 }

func (t *tally) add(n uint64) { t.n.Store(t.n.Load() + n) }
func (t *tally) load() uint64 { return t.n.Load() }

// traffic counts messages and the bytes of their payloads.
type traffic struct{ messages, bytes tally }

func (t *traffic) add(messages, bytes int) {
	t.messages.add(uint64(messages))
	t.bytes.add(uint64(bytes))
}

// Counters returns what the endpoint's ports have sent and received since Open, ports closed since
// included, and what was dropped.
func (e *Endpoint) Counters() Counters {
	c := e.closedPorts()
	for i := range e.ports {
		if p := e.ports[i].Load(); p != nil {
			c.add(p.Counters())
		}
	}
	c.DropShort = e.dropped[dropShort].load()
	c.DropVersion = e.dropped[dropVersion].load()
	c.DropLength = e.dropped[dropLength].load()
	c.DropChecksum = e.dropped[dropChecksum].load()
	c.DropKind = e.dropped[dropKind].load()
	c.DropType = e.dropped[dropType].load()
	c.DropCluster = e.dropped[dropCluster].load()
	c.DropNode = e.dropped[dropNode].load()
	c.DropGroup = e.dropped[dropGroup].load()
	c.DropSource = e.dropped[dropSource].load()
	c.DropNoPort = e.dropped[dropNoPort].load()
	c.DropProbe = e.dropped[dropProbe].load()
	c.RxProbes = e.probes.asked.load()
	c.ProbesAnswered = e.probes.answered.load()
	c.ProbesUnanswered = e.probes.unanswered.load()
	c.RxAnswers = e.probes.came.load()
	return c
}

func (e *Endpoint) closedPorts() Counters {
	e.portMu.Lock()
	defer e.portMu.Unlock()
	return e.gone
}

func (c *Counters) add(p PortCounters) {
	c.TxMessages += p.TxMessages
	c.TxBytes += p.TxBytes
	c.RxMessages += p.RxMessages
	c.RxBytes += p.RxBytes
	c.DropNoBuffer += p.DropNoBuffer
}

// Counters returns what the port has sent, received and dropped.
func (p *Port) Counters() PortCounters {
	return PortCounters{
		TxMessages:   p.tx.messages.load(),
		TxBytes:      p.tx.bytes.load(),
		RxMessages:   p.rx.messages.load(),
		RxBytes:      p.rx.bytes.load(),
		DropNoBuffer: p.noBuffer.load(),
	}
}
