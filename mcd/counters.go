package mcd

import "sync/atomic"

// Counters of an endpoint. Drops are counted by cause, as docs/wire-format.md lists them.
type Counters struct {
	TxMessages uint64 `json:"tx_messages"`
	TxBytes    uint64 `json:"tx_bytes"` // of payloads
	RxMessages uint64 `json:"rx_messages"`
	RxBytes    uint64 `json:"rx_bytes"`

	DropShort    uint64 `json:"drop_short"`     // fewer bytes than a header
	DropVersion  uint64 `json:"drop_version"`   // another wire version
	DropLength   uint64 `json:"drop_length"`    // fewer bytes than the header says
	DropChecksum uint64 `json:"drop_checksum"`  // changed on the way, or might have where the payload is not covered
	DropKind     uint64 `json:"drop_kind"`      // unknown kind
	DropType     uint64 `json:"drop_type"`      // another EtherType
	DropCluster  uint64 `json:"drop_cluster"`   // another cluster's
	DropNode     uint64 `json:"drop_node"`      // for another node
	DropGroup    uint64 `json:"drop_group"`     // for a group that was not joined
	DropSource   uint64 `json:"drop_source"`    // from another address than the claimed node's
	DropNoPort   uint64 `json:"drop_no_port"`   // the port is not open here
	DropNoBuffer uint64 `json:"drop_no_buffer"` // the port had neither a posted buffer nor backlog left
	DropProbe    uint64 `json:"drop_probe"`     // a probe that is too short, or was sent to a group

	DropPlain  uint64 `json:"drop_plain"`  // with keys: not authenticated
	DropKey    uint64 `json:"drop_key"`    // with keys: of a key that is not valid here
	DropTag    uint64 `json:"drop_tag"`    // with keys: forged, or changed on the way
	DropReplay uint64 `json:"drop_replay"` // with keys: came before, or too late
	DropStale  uint64 `json:"drop_stale"`  // with keys: its sender does not answer, or it is older than this endpoint
	DropBudget uint64 `json:"drop_budget"` // with keys: of unknown senders, of which too many send

	RxContacts        uint64 `json:"rx_contacts"`         // frames by which nodes with keys got to know this one
	TxContacts        uint64 `json:"tx_contacts"`         // and those of this node
	KeyReloads        uint64 `json:"key_reloads"`         // times that the key file has changed
	KeyReloadFailures uint64 `json:"key_reload_failures"` // times that it was no good, and the keys stayed

	RxProbes         uint64 `json:"rx_probes"`         // probes of other nodes
	ProbesAnswered   uint64 `json:"probes_answered"`   // of them
	ProbesUnanswered uint64 `json:"probes_unanswered"` // of them: the link refused the reply, or its tag
	RxReplies        uint64 `json:"rx_replies"`        // replies to probes of this node
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
	dropPlain
	dropKey
	dropTag
	dropReplay
	dropStale
	dropBudget
	drops
)

// traffic counts messages and the bytes of their payloads.
type traffic struct{ messages, bytes atomic.Uint64 }

func (t *traffic) add(messages, bytes int) {
	t.messages.Add(uint64(messages))
	t.bytes.Add(uint64(bytes))
}

// Counters returns what the endpoint's ports, closed ones included, have sent and received since
// Open, and what was dropped.
func (e *Endpoint) Counters() Counters {
	c := e.portCounters()
	for cause, count := range []*uint64{
		dropShort: &c.DropShort, dropVersion: &c.DropVersion, dropLength: &c.DropLength, dropChecksum: &c.DropChecksum,
		dropKind: &c.DropKind, dropType: &c.DropType, dropCluster: &c.DropCluster, dropNode: &c.DropNode,
		dropGroup: &c.DropGroup, dropSource: &c.DropSource, dropNoPort: &c.DropNoPort, dropProbe: &c.DropProbe,
		dropPlain: &c.DropPlain, dropKey: &c.DropKey, dropTag: &c.DropTag, dropReplay: &c.DropReplay,
		dropStale: &c.DropStale, dropBudget: &c.DropBudget,
	} {
		*count = e.dropped[cause].Load()
	}
	c.RxProbes = e.probes.asked.Load()
	c.ProbesAnswered = e.probes.answered.Load()
	c.ProbesUnanswered = e.probes.unanswered.Load()
	c.RxReplies = e.probes.replies.Load()
	if a := e.auth; a != nil {
		c.RxContacts, c.TxContacts = a.rxContacts.Load(), a.txContacts.Load()
		c.KeyReloads, c.KeyReloadFailures = a.reloads.Load(), a.failures.Load()
	}
	return c
}

// portCounters sums up the ports, under the lock, so that none closes in between and is missed.
func (e *Endpoint) portCounters() Counters {
	e.portMu.Lock()
	defer e.portMu.Unlock()
	c := e.gone
	for i := range e.ports {
		if p := e.ports[i].Load(); p != nil {
			c.add(p.Counters())
		}
	}
	return c
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
		TxMessages:   p.out.tx.messages.Load(),
		TxBytes:      p.out.tx.bytes.Load(),
		RxMessages:   p.rx.messages.Load(),
		RxBytes:      p.rx.bytes.Load(),
		DropNoBuffer: p.noBuffer.Load(),
	}
}
