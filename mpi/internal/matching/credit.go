package matching

import "slices"

// giveBack returns credit for what was taken: half of it at a time, or at once where sends wait.
func (e *Engine) giveBack(p *peer, out []Output) []Output {
	if !p.starved && 2*p.owedHeaders < e.cfg.Headers && 2*p.owedBytes < max(1, e.cfg.EagerBytes) {
		return out
	}
	headers := p.owedHeaders - min(p.extra, p.owedHeaders)
	p.extra -= p.owedHeaders - headers
	p.owedHeaders = 0
	return e.credit(p, headers, out)
}

// grant gives a peer whose sends wait more headers than are its due, if one of them may be wanted.
func (e *Engine) grant(p *peer, out []Output) []Output {
	if !p.starved {
		return out
	}
	out = e.giveBack(p, out)
	if p.headersLeft > 0 || !e.wants(p) {
		return out
	}
	more := max(1, e.cfg.Headers/4)
	p.extra += more
	return e.credit(p, more, out)
}

// credit gives headers, and the bytes that are owed.
func (e *Engine) credit(p *peer, headers int, out []Output) []Output {
	if headers == 0 && p.owedBytes == 0 || p.down {
		return out
	}
	r := Record{Kind: Credit, Headers: headers, Bytes: p.owedBytes, Seen: p.received}
	p.headersLeft += headers
	p.bytesLeft += p.owedBytes
	p.owedBytes = 0
	return append(out, Output{Do: Push, To: p.rank, Record: r})
}

// wants reports whether a message of a peer might go into a receive, or be found by a probe.
func (e *Engine) wants(p *peer) bool {
	return len(e.wild) > 0 || len(p.posted) > p.offered ||
		slices.ContainsFunc(e.probes, func(q *Pattern) bool { return q.Source == AnySource || q.Source == p.rank })
}

// grantAll is grant to all.
func (e *Engine) grantAll(out []Output) []Output {
	for k := range e.peers {
		out = e.grant(&e.peers[k], out)
	}
	return out
}
