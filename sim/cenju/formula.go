package cenju

import "time"

// Formula returns what Simulate does, in closed form. A piece of S bytes takes the longest of
//
//	S/network                         the network never stops
//	S/receiver + still                the FIFO is never empty
//	S/network + still - FIFO/network  the network stops while the FIFO is full
//	still + beside                    the processor is never idle
//
// where still and beside are 0 or Delay + S/invalidation: for how long the receiver stands still,
// and how long the processor works beside its reception. The formula is derived from the paper's
// account in §6.3, which has none.
//
// It is exact for a transfer of one piece, or of equal ones. Of others it adds the pieces up, and
// does not know that a small last piece waits for the work behind a large one.
func (c Config) Formula(m Mode, size int) (cycle time.Duration) {
	c.pieces(m, size, func(bytes int) {
		still, beside := c.invalidation(m, bytes)
		network := c.Network.Time(bytes)
		cycle += max(network, c.Receiver.Time(bytes)+still, network+still-c.Network.Time(c.FIFO), still+beside)
	})
	return cycle
}

// Throughput is the rate at which transfers of size bytes go, each of which takes a cycle.
func Throughput(size int, cycle time.Duration) Rate {
	return Rate(float64(size) / float64(cycle) * 1e3)
}

// Limit is what the throughput tends to as transfers that are not cut grow.
func (c Config) Limit(m Mode) Rate {
	const large = 1 << 30
	if m == RemoteWrite {
		return Throughput(c.Piece, c.Formula(m, c.Piece))
	}
	return Throughput(large, c.Formula(m, large))
}

// Sweep is a Config of which one parameter is changed.
type Sweep struct {
	Parameter string
	Value     float64 // in Unit
	Unit      string
	Config    Config
}

// Sweeps returns those of figures 12 and 13, which are NotPipelined, and one of the FIFO, which the
// paper does not have. Its text does not tell the values of its curves; these are ours.
func (c Config) Sweeps() (all []Sweep) {
	add := func(parameter, unit string, value float64, change func(*Config)) {
		s := Sweep{Parameter: parameter, Unit: unit, Value: value, Config: c}
		change(&s.Config)
		all = append(all, s)
	}
	for _, part := range []Rate{5. / 6, 1, 7. / 6} {
		r := c.Network * part
		add("network", "MB/s", float64(r), func(c *Config) { c.Network = r })
	}
	for _, part := range []Rate{5. / 6, 1, 5. / 4} {
		r := c.Receiver * part
		add("receiver", "MB/s", float64(r), func(c *Config) { c.Receiver = r })
	}
	for _, part := range []Rate{1. / 2, 1, 2} {
		r := c.Invalidation * part
		add("invalidation", "MB/s", float64(r), func(c *Config) { c.Invalidation = r })
	}
	for _, part := range []float64{0, 1, 2} {
		d := time.Duration(part * float64(c.Delay))
		add("delay", "us", float64(d)/1e3, func(c *Config) { c.Delay = d })
	}
	for _, packets := range []int{-1, 0, 3} {
		n := max(c.FIFO+packets*c.Packet, c.Packet)
		add("fifo", "bytes", float64(n), func(c *Config) { c.FIFO = n })
	}
	return all
}
