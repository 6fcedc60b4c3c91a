package sim

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/sim/vbft"
	"github.com/rawlane/rawlane/transport"
)

// simSamples is how many measurements a run of fig9 has: one a second, in the paper's minute.
const simSamples = 60

// changeLine is a line of fig9 as JSON.
type changeLine struct {
	simParameters
	Seconds   float64       `json:"seconds"`
	OldVID    transport.VID `json:"old_vid"`
	NewVID    transport.VID `json:"new_vid"`
	SenderS   float64       `json:"sender_changes_s"`
	ReceiverS float64       `json:"receiver_changes_s"`

	AtS      float64   `json:"at_s"`
	MBPerS   float64   `json:"mb_per_s"`
	Receiver []float64 `json:"receiver_mb_per_s"`
	Flooded  uint64    `json:"flooded"`
	Dropped  uint64    `json:"dropped"`
}

// change is the experiment as it was asked for.
func (s *simVBFT) change() *vbft.Change {
	sample := time.Duration(s.seconds / simSamples * float64(time.Second))
	c := &vbft.Change{
		Network: s.network(), Old: s.net.VLANs[0].VID, New: s.net.VLANs[1].VID,
		Sender: simSamples / 3 * sample, Receiver: simSamples * 2 / 3 * sample, Length: simSamples * sample, Sample: sample,
	}
	if s.barrier {
		c.Receiver = c.Sender
	}
	return c
}

func (s *simVBFT) runChange(cmd *cobra.Command) error {
	c := s.change()
	form := changeLine{
		simParameters: s.parameters(), Seconds: s.seconds, OldVID: c.Old, NewVID: c.New,
		SenderS: c.Sender.Seconds(), ReceiverS: c.Receiver.Seconds(),
	}
	if !s.json {
		if err := s.writeChangeHead(c); err != nil {
			return err
		}
	}
	var all []changeLine
	err := c.Run(func(sample vbft.ChangeSample) error {
		l := form
		l.AtS, l.Flooded, l.Dropped = sample.At.Seconds(), sample.Flooded, sample.Dropped
		for _, bytes := range sample.Received {
			l.Receiver = append(l.Receiver, float64(bytes)/1e6/c.Sample.Seconds())
		}
		l.MBPerS = float64(sample.Total()) / 1e6 / c.Sample.Seconds()
		all = append(all, l)
		if s.json {
			return firstError(cmd.Context().Err(), s.writeJSON(l))
		}
		return firstError(cmd.Context().Err(), s.writeChangeLine(l))
	})
	if err != nil {
		return err
	}
	if !s.json {
		if err := s.writeChangeMeans(all); err != nil {
			return err
		}
	}
	if s.plot != "" {
		return plotChange(s.plot, all)
	}
	return nil
}

func firstError(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *simVBFT) writeChangeHead(c *vbft.Change) error {
	half := len(s.net.Hosts) / 2
	return firstError(
		s.printf("# VFREC-Net, figure 9: nodes 0-%d send to %d-%d on VID %d; node 0 changes to VID %d at %g s, node %d at %g s\n",
			half-1, half, 2*half-1, c.Old, c.New, c.Sender.Seconds(), half, c.Receiver.Seconds()),
		s.printf("%s# A # is 1 %% of what all receivers' cables carry\n", s.conditions()),
		s.printf("%-8s %9s %10s %9s\n", "# Second", "MB/s", "Flooded", "Dropped"),
	)
}

func (s *simVBFT) writeChangeLine(l changeLine) error {
	whole := float64(len(l.Receiver)) * l.BitsPerS / 8e6
	return s.printf("%-8.4g %9.1f %10d %9d  %s\n", l.AtS, l.MBPerS, l.Flooded, l.Dropped, bar(l.MBPerS, whole, 100))
}

// phase is 0 before node 0 changes, 2 once both have, and 1 between.
func (l *changeLine) phase() int {
	switch {
	case l.AtS < l.SenderS:
		return 0
	case l.AtS < l.ReceiverS:
		return 1
	}
	return 2
}

// writeChangeMeans sums up, the first sample of each phase aside: in it windows open, or what waits
// on the old way arrives.
func (s *simVBFT) writeChangeMeans(all []changeLine) error {
	var sum, count [3]float64
	for i := 1; i < len(all); i++ {
		if p := all[i].phase(); all[i-1].phase() == p {
			sum[p] += all[i].MBPerS
			count[p]++
		}
	}
	if s.barrier {
		return s.printf("# Mean: %.1f MB/s before, %.1f after\n", sum[0]/count[0], sum[2]/count[2])
	}
	return s.printf("# Mean: %.1f MB/s before, %.1f between, %.1f after\n", sum[0]/count[0], sum[1]/count[1], sum[2]/count[2])
}
