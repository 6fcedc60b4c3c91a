package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start/internal/pmi"
	"github.com/rawlane/rawlane/internal/standstill"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// Config of Run and Main.
type Config struct {
	// Nodes is how many nodes there are where nobody says so: they are all in this process. Zero
	// is 1.
	Nodes int
	// Exact refuses any other number.
	Exact bool
	// Limit is how long a node may take, from its start to its end; then its context ends. Zero is
	// for ever; less than a millisecond is refused, here and of JoinTimeout.
	Limit time.Duration
	// JoinTimeout is how long the nodes may take to meet. Zero is DefaultJoinTimeout. A node that
	// has waited for a twentieth of it says so by package log. The time in which this machine stood
	// still does not count.
	JoinTimeout time.Duration
	// Endpoint configures the endpoint. Run fills in Node, and where they are not set Cluster, by
	// the job's name, and KeyFile, by RAWLANE_KEY_FILE or the host file.
	Endpoint mcd.Config
}

// DefaultJoinTimeout is a minute: some launchers start processes one behind another.
const DefaultJoinTimeout = time.Minute

// quietPart is in which part of that time the nodes meet as a rule: 3 s of a minute. Behind it a
// node says that it waits.
const quietPart = 20

// Node is a node that has met the others.
type Node struct {
	*mcd.Endpoint
	job Job

	mu        sync.Mutex
	exchanger *cluster.Exchanger
}

// Size returns how many nodes there are: their numbers are 0 to Size-1.
func (n *Node) Size() int { return n.job.Size }

// Job returns what this process was started as.
func (n *Node) Job() Job { return n.job }

// Exchange gives each node the bytes of all nodes, in the order of their numbers, such as the keys
// of windows; all nodes call it. It waits for them until ctx ends, also for one that has died: what
// bounds that is the launcher, or Config.Limit. Errors are those of cluster.Exchanger.
func (n *Node) Exchange(ctx context.Context, own []byte) ([][]byte, error) {
	x, err := n.open()
	if err != nil {
		return nil, err
	}
	return x.Exchange(ctx, own)
}

// Gather gives one node the bytes of all nodes; all nodes call it. Others get nil. It waits as
// Exchange does.
func (n *Node) Gather(ctx context.Context, root mcd.NodeID, own []byte) ([][]byte, error) {
	x, err := n.open()
	if err != nil {
		return nil, err
	}
	return x.Gather(ctx, root, own)
}

// open returns the node's exchanger, which takes its port at first use alone.
func (n *Node) open() (x *cluster.Exchanger, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.exchanger == nil {
		n.exchanger, err = cluster.OpenExchanger(n.Endpoint, cluster.ExchangerConfig{})
	}
	return n.exchanger, err
}

func (n *Node) close() (err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer func() { err = errors.Join(err, n.Close()) }() // also if another port's function ends the exchanger's wait
	if n.exchanger != nil {
		err = n.exchanger.Close()
	}
	return err
}

// Main is the main function of a program: Run, until f returns or the process is interrupted. If it
// fails, or is interrupted, it says why and ends the process with status 1.
func Main(cfg Config, f func(ctx context.Context, n *Node) error) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second one ends the process
	err := Run(ctx, cfg, f)
	switch cause := context.Cause(ctx); {
	case cause != nil && err == nil:
		err = cause
	case cause != nil:
		err = fmt.Errorf("%w: %w", cause, err)
	}
	stop()
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", filepath.Base(os.Args[0]), err)
		os.Exit(1)
	}
}

// Run starts the node that the environment says this process is, has it meet the others, and calls
// f. Behind f it closes the node: f ends when the others need it no more, behind a barrier. Where
// nobody has started this process as one of several, it does so for Config.Nodes nodes, each in a
// goroutine; if one fails, the context of the others ends.
//
// Errors: ErrEnvironment if the environment makes no sense; those of the links, among them
// transport.ErrPermission; those of cluster.Join, which name the nodes that are missing; before it,
// under PMI-1, context.DeadlineExceeded where processes do not come to their launcher, which does
// not say which; those of f, joined with those of the node's close.
func Run(ctx context.Context, cfg Config, f func(ctx context.Context, n *Node) error) (err error) {
	wrong := func(t time.Duration) bool { return t != 0 && t < time.Millisecond } // most often without its unit
	if cfg.Nodes < 0 || wrong(cfg.Limit) || wrong(cfg.JoinTimeout) {
		return fmt.Errorf("start: Config.Nodes %d, Config.Limit %v, Config.JoinTimeout %v: want 0 or more, and "+
			"times of 1ms at least (a number without a unit is in nanoseconds)", cfg.Nodes, cfg.Limit, cfg.JoinTimeout)
	}
	if cfg.Limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, cfg.Limit)
		defer cancel()
	}
	cfg.Nodes = max(cfg.Nodes, 1)
	cfg.JoinTimeout = cmp.Or(cfg.JoinTimeout, DefaultJoinTimeout)
	meet, cancel := standstill.WithTimeout(ctx, cfg.JoinTimeout)
	defer cancel()
	job, err := findJob(meet, os.Getenv)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	returned := false // not, if f panics, or ends its goroutine
	defer func() { err = errors.Join(err, job.close(returned && err == nil)) }()
	if cfg.Exact && job.Launcher != Nobody && job.Size != cfg.Nodes {
		return fmt.Errorf("start: %w: this program is for %d nodes, and %s has started %d (want %d)",
			ErrEnvironment, cfg.Nodes, job.Launcher, job.Size, cfg.Nodes)
	}
	if cfg.Endpoint.KeyFile == "" {
		if cfg.Endpoint.KeyFile, err = keyFile(os.Getenv); err != nil {
			return fmt.Errorf("start: %w", err)
		}
	}
	if job.Launcher == Nobody {
		job.Size = cfg.Nodes
	}
	if job.Launcher == Nobody || job.Size == 1 {
		if err := checkKind(os.Getenv(EnvLink)); err != nil { // it has none, but what is wrong is said
			return fmt.Errorf("start: %w", err)
		}
		job.Local = job.Size
		err = runAll(ctx, cfg, job, f)
	} else {
		err = runOne(ctx, meet, cfg, job, f)
	}
	returned = true
	return err
}

// failed keeps the connections to the launchers of nodes that have failed: each hears of that when
// the process ends, which says why before, and then ends the others.
var failed []*pmi.Client

// close tells the launcher that this process ends as it should, if it does.
func (j *Job) close(well bool) error {
	switch {
	case j.pmi == nil:
	case well:
		return j.pmi.Finalize()
	default:
		failed = append(failed, j.pmi)
	}
	return nil
}

// keyFile returns the cluster's key file: the one that the environment names, else the one of the
// host file, if there is one.
func keyFile(env func(string) string) (string, error) {
	if file := env(EnvKeyFile); file != "" || env(EnvHostfile) == "" {
		return file, nil
	}
	file, err := cluster.ReadHostfile(env(EnvHostfile))
	if err != nil {
		return "", err
	}
	return file.KeyFile, nil
}

// runOne runs this process's node. The nodes meet before the second context ends.
func runOne(ctx, meet context.Context, cfg Config, job Job, f func(context.Context, *Node) error) (err error) {
	left := cfg.JoinTimeout
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	waits := time.AfterFunc(left/quietPart, func() {
		log.Printf("node %d of %d waits for the others, for %v at most", job.Node, job.Size, left.Round(time.Second/10))
	})
	defer waits.Stop()
	cfg.Endpoint.Node = mcd.NodeID(job.Node)
	cfg.Endpoint.Cluster = cmp.Or(cfg.Endpoint.Cluster, job.cluster())
	link, err := job.openLink(meet, cfg.Endpoint.Cluster, os.Getenv)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	ep, err := mcd.Open(cfg.Endpoint, link)
	if err != nil {
		return errors.Join(err, link.Close())
	}
	n := &Node{Endpoint: ep, job: job}
	defer func() { err = errors.Join(err, n.close()) }() // also if f does not return
	members, err := cluster.Join(meet, ep, cluster.Config{Nodes: job.Size})
	waits.Stop()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, members.Close()) }()
	return f(ctx, n)
}

// errAbandoned is the failure of a node that has ended its goroutine.
var errAbandoned = errors.New("it has ended its goroutine (runtime.Goexit, as FailNow of a test does)")

// runAll runs all nodes in this process, on a fabric.
func runAll(ctx context.Context, cfg Config, job Job, f func(context.Context, *Node) error) (err error) {
	network, err := fabric.New(fabric.Config{})
	if err != nil {
		return err
	}
	links, err := network.AddSwitch("").Links(job.Size)
	if err != nil {
		return err
	}
	table := make([]mcd.Node, job.Size)
	for k, l := range links {
		table[k] = mcd.Node{ID: mcd.NodeID(k), MACs: []transport.MAC{l.MAC()}}
	}
	nodes := make([]*Node, job.Size)
	for k, l := range links {
		defer func() { err = errors.Join(err, l.Close()) }() // again, if its endpoint is open
		one := cfg.Endpoint
		one.Node, one.Nodes = mcd.NodeID(k), table
		ep, openErr := mcd.Open(one, l)
		if openErr != nil {
			return openErr
		}
		here := job
		here.Node = k
		nodes[k] = &Node{Endpoint: ep, job: here}
		defer func() { err = errors.Join(err, nodes[k].close()) }()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	errs := make([]error, job.Size)
	var all sync.WaitGroup
	for k, n := range nodes {
		all.Go(func() {
			err := errAbandoned
			defer func() {
				if err != nil {
					errs[k] = fmt.Errorf("node %d: %w", k, err)
					cancel(errs[k])
				}
			}()
			err = f(ctx, n)
		})
	}
	all.Wait()
	return errors.Join(errs...)
}
