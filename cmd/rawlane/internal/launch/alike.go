package launch

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
)

const (
	// alikePort is where nodes of several machines compare what they run.
	alikePort mcd.PortID = 202
	// maxAlike bounds what is shown of another node's.
	maxAlike = 300
)

// Alike says what all nodes are to run: the verb, and its flags of these names, with their values.
func Alike(cmd *cobra.Command, flags ...string) string {
	var b strings.Builder
	b.WriteString(cmd.CommandPath())
	for _, name := range flags {
		if value := cmd.Flags().Lookup(name).Value.String(); value != "" {
			fmt.Fprintf(&b, " --%s %s", name, value)
		}
	}
	return b.String()
}

// runAlike runs the part of this node, of several that are started each by its own user, once all
// are found to run the same. One that ends without a result tells the others, which end as well:
// each would wait for it else, and then call it silent. Nothing is sent while the parts run.
func runAlike(
	ctx context.Context, ep *mcd.Endpoint, alike string, part func(context.Context) error,
) (err error) {
	running, end := context.WithCancelCause(ctx)
	defer end(nil)
	x, err := cluster.OpenExchanger(ep, cluster.ExchangerConfig{
		Port: alikePort, PeerTimeout: AskTimeout,
		Answer: func(from mcd.NodeID, why []byte) ([]byte, bool) {
			end(&endedError{from, string(why)})
			return nil, true
		},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, x.Close()) }()
	if err = agree(running, x, ep, alike); err == nil {
		err = part(running)
	}
	if err != nil && !errors.Is(err, errNotAlike) {
		// It may be how another node has ended that has failed the part; its word is under way.
		// An endpoint that has ended, which Linger tells, has failed the part, too.
		_ = Linger(running, ep, hearTime)
	}
	var told *endedError
	switch {
	case err == nil, errors.Is(err, errNotAlike): // which each finds out by itself
		return err
	case errors.As(context.Cause(running), &told):
		return told
	case ctx.Err() != nil:
		tell(x, ep, "interrupted")
		return ctx.Err() // what else has failed has failed by that
	default:
		tell(x, ep, err.Error())
	}
	return err
}

// endedError is why the part of a node ends: another one has ended without a result.
type endedError struct {
	node mcd.NodeID
	why  string
}

func (e *endedError) Error() string {
	return fmt.Sprintf("node %d has ended without a result: %s", e.node, e.why)
}

const (
	// tellTime is how long others are told that this node ends, and tellEach how long each of them,
	// at most: some may be gone, and be why it ends.
	tellTime = 2 * time.Second
	tellEach = tellTime / 8
	// hearTime is how long a node whose part has failed waits for the word of another one that has
	// ended: that takes the time in which the other's part ends.
	hearTime = time.Second / 2
)

// tell tells the other nodes why this one ends, after its context. Who does not hear it notices the
// silence.
func tell(x *cluster.Exchanger, ep *mcd.Endpoint, why string) {
	ctx, cancel := context.WithTimeout(context.Background(), tellTime)
	defer cancel()
	why = why[:min(len(why), maxAlike, ep.MaxPayload()/2)] // the rest is enough for the exchanger's header
	for _, n := range ep.Nodes() {
		if n.ID == ep.Node() {
			continue
		}
		turn, cancel := context.WithTimeout(ctx, tellEach)
		_, _ = x.Ask(turn, n.ID, []byte(why))
		cancel()
	}
}

// errNotAlike: the nodes do not run the same.
var errNotAlike = errors.New("want the same on all")

// agree compares what the nodes run, each as its own user has typed it. Without it those that
// differ would wait for each other's messages, and each would say that the other is silent.
func agree(ctx context.Context, x *cluster.Exchanger, ep *mcd.Endpoint, alike string) error {
	all, err := x.Exchange(ctx, []byte(alike))
	if err != nil {
		return fmt.Errorf("what do the others run? %w (start the same verb of the same rawlane on each node)", err)
	}
	for i, n := range ep.Nodes() {
		if string(all[i]) != alike {
			return fmt.Errorf("this node runs %q, and node %d %.*q (%w)", alike, n.ID, maxAlike, all[i], errNotAlike)
		}
	}
	return nil
}
