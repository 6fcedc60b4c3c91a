package sim

import (
	"context"
	"fmt"
	"time"

	"gonum.org/v1/plot"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/sim/vbft"
	"github.com/rawlane/rawlane/transport"
)

// simSamples is the number of measurements in a run of fig9: one a second, in the paper's minute.
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

// change makes the experiment.
func (s *vbftVerb) change() *vbft.Change {
	sample := time.Duration(s.seconds / simSamples * float64(time.Second))
	c := &vbft.Change{
		Network: s.network(), Old: s.net.VLANs[0].VID, New: s.net.VLANs[1].VID,
		Sender: simSamples / 3 * sample, Receiver: simSamples * 2 / 3 * sample,
		Length: simSamples * sample, Sample: sample,
	}
	if s.barrier {
		c.Receiver = c.Sender
	}
	return c
}

func (s *vbftVerb) runChange(ctx context.Context, lines *cli.Lines) (drawing, error) {
	c := s.change()
	form := changeLine{
		simParameters: s.parameters(), Seconds: s.seconds, OldVID: c.Old, NewVID: c.New,
		SenderS: c.Sender.Seconds(), ReceiverS: c.Receiver.Seconds(),
	}
	head, all := s.changeHead(c), []changeLine(nil)
	err := c.Run(ctx.Err, func(sample vbft.ChangeSample) error {
		l := form
		l.AtS, l.Flooded, l.Dropped = sample.At.Seconds(), sample.Flooded, sample.Dropped
		for _, bytes := range sample.Received {
			l.Receiver = append(l.Receiver, float64(bytes)/1e6/c.Sample.Seconds())
		}
		l.MBPerS = float64(sample.Total()) / 1e6 / c.Sample.Seconds()
		all = append(all, l)
		return lines.Write(l, head, l.text())
	})
	if err == nil && !s.json {
		_, err = fmt.Fprintln(lines.Out, s.changeMeans(all))
	}
	return func() (*plot.Plot, error) { return plotChange(all) }, err
}

func (s *vbftVerb) changeHead(c *vbft.Change) string {
	half := len(s.net.Hosts) / 2
	return fmt.Sprintf("# VFREC-Net, figure 9: nodes 0-%d send to %d-%d on VID %d; "+
		"node 0 changes to VID %d at %g s, node %d at %g s\n",
		half-1, half, 2*half-1, c.Old, c.New, c.Sender.Seconds(), half, c.Receiver.Seconds()) +
		s.conditions() + "# A # is 1 % of what all receivers' cables carry\n" +
		fmt.Sprintf("%-8s %9s %10s %9s\n", "# Second", "MB/s", "Flooded", "Dropped")
}

func (l *changeLine) text() string {
	whole := float64(len(l.Receiver)) * l.BitsPerS / 8e6
	return fmt.Sprintf("%-8.4g %9.1f %10d %9d  %s\n", l.AtS, l.MBPerS, l.Flooded, l.Dropped, bar(l.MBPerS, whole, 100))
}

// phase is 0 before node 0 changes, 2 after both have changed, and 1 between.
func (l *changeLine) phase() int {
	switch {
	case l.AtS < l.SenderS:
		return 0
	case l.AtS < l.ReceiverS:
		return 1
	}
	return 2
}

// changeMeans sums up. It leaves the first sample of each phase out: in it windows open, or frames
// queued on the old path arrive.
func (s *vbftVerb) changeMeans(all []changeLine) string {
	var sum, count [3]float64
	for i := 1; i < len(all); i++ {
		if p := all[i].phase(); all[i-1].phase() == p {
			sum[p] += all[i].MBPerS
			count[p]++
		}
	}
	if s.barrier {
		return fmt.Sprintf("# Mean: %.1f MB/s before, %.1f after", sum[0]/count[0], sum[2]/count[2])
	}
	return fmt.Sprintf("# Mean: %.1f MB/s before, %.1f between, %.1f after",
		sum[0]/count[0], sum[1]/count[1], sum[2]/count[2])
}
