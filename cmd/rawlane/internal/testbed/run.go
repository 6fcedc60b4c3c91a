package testbed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/testbed"
)

// NewRunCommand returns the verb run.
func NewRunCommand() *cobra.Command {
	var r runVerb
	cmd := &cobra.Command{
		Use:   "run -n N [flags] PROGRAM [ARGUMENT...]",
		Short: "Start a program once per node, each in a network namespace of its own",
		Long: `Starts a program N times, as nodes 0 to N-1, in network namespaces that share a switch. Each finds in
its environment RAWLANE_NODE and RAWLANE_NODES, RAWLANE_INTERFACES (eth0,eth1,...) and
RAWLANE_HOSTFILE, RAWLANE_KEY_FILE with --key-file, RAWLANE_LINK with --link, and GOMAXPROCS, its share
of the cores, unless that is set. Lines that a program prints are marked with its node's number.

Where there are no namespaces, for lack of privilege or on another system than Linux, the programs run
side by side, and their links are UDP's on this host's loopback: RAWLANE_LINK is udp, RAWLANE_LISTEN
says where a program's link listens, and RAWLANE_SEEDS where others do. One line says so.

With --link shm the programs run side by side, too, and reach each other through shared memory:
RAWLANE_SEGMENT names the segment in which their links meet, RAWLANE_SHM_DIR its folder, and
RAWLANE_HOSTFILE is empty. With --segment NAME programs in namespaces are told of a segment as well:
what they send each other then goes through memory, and by their interfaces what is for others.

With --hosts FILE the programs run on other machines: -n of them, or as many as there are slots, in the
order of the file. The program and this command are copied there, into a folder that is removed
afterwards, and the key file with them. Programs that are all on one host meet in shared memory; one
to a host, by --interface; else by UDP, and within a host in shared memory. Each runs on its share of
its host's cores, if there is one for each.

If one fails, the others are ended, unless --keep-going lets them find out themselves. Its exit
status is the command's: 128 and the signal's number if a signal ended it.

  rawlane run -n 4 ./program --its-own-flag
  go build -o hello ./examples/hello && rawlane run -n 2 ./hello
  rawlane run --hosts machines.txt --interface eth1 ./hello`,
		Args: cli.Arguments(1, math.MaxInt, "which program?"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := r.checkHosts(cmd); err != nil {
				return err
			}
			if err := r.checkBounds(); err != nil {
				return err
			}
			kinds := []string{"packet", "ring", "shm", "udp", "xdp"}
			if r.link != "" && !slices.Contains(kinds, r.link) {
				return cli.NotOneOf("link", r.link, kinds...)
			}
			return r.run(cmd, args)
		},
	}
	cmd.Flags().SetInterspersed(false)
	bedFlags(cmd, &r.cfg)
	launch.KeyFileFlag(cmd, &r.keyFile)
	cmd.Flags().StringVar(&r.link, "link", "",
		"kind of link that the programs are told to open: packet, ring, shm, udp or xdp")
	cli.Choice(cmd, "link", "packet", "ring", "shm", "udp", "xdp")
	cli.Default(cmd.Flags(), "link", "ring, or udp where there are no namespaces")
	cmd.Flags().StringVar(&r.segment, "segment", "",
		"name of a segment in which the programs' links meet, and reach each other through shared memory")
	cli.Default(cmd.Flags(), "segment", "run with --link shm, else none")
	cmd.Flags().StringVar(&r.hosts, "hosts", "",
		"file of hosts on which the programs run, by ssh: lines of NAME, NAME:SLOTS or NAME slots=SLOTS")
	cmd.Flags().StringVar(&r.shell, "remote-shell", sshCommand,
		"what runs a command there, given NAME and COMMAND")
	cmd.Flags().StringVar(&r.iface, "interface", "", "network interface of the programs on hosts")
	cli.Default(cmd.Flags(), "interface", "the only one that is up there")
	cmd.Flags().StringVar(&r.pin, "pin", "auto",
		"where programs on hosts run: auto, each on its share of the host's cores, if there is one for each, or none")
	cli.Choice(cmd, "pin", pins...)
	cmd.Flags().BoolVar(&r.keepGoing, "keep-going", false, "if a program fails, let the others go on")
	cmd.Flags().BoolVar(&r.stdin, "stdin", false, "give the standard input to node 0's program")
	return cmd
}

// runVerb starts programs.
type runVerb struct {
	cfg              testbed.Config
	keyFile, link    string
	segment          string
	keepGoing, stdin bool

	// Of programs on other hosts: their list, how to reach them, the network interface there, and
	// whether each has cores of its own.
	hosts, shell, iface, pin string
}

func (r *runVerb) run(cmd *cobra.Command, args []string) (err error) {
	err = cmp.Or(findProgram(args[0]), launch.CheckKeyFile(r.keyFile), launch.CheckSegment(r.segment, 1))
	if err != nil {
		return err
	}
	at, err := r.place(cmd, args[0])
	if err != nil {
		return err
	}
	defer func() { err = cmp.Or(err, at.close()) }()
	nodes := cmp.Or(at.nodes, r.cfg.Nodes)
	hostfile, err := writeHostfile(at)
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(hostfile) }()

	ctx, stop := context.WithCancelCause(cmd.Context())
	defer stop(nil)
	printer := &printer{failed: stop}
	programs := make([]*exec.Cmd, nodes)
	lines := make([][2]*lineWriter, nodes)
	for k := range programs {
		c, err := r.program(at, k, nodes, hostfile, args)
		if err != nil {
			return err
		}
		out := &lineWriter{prefix: fmt.Sprintf("[%d] ", k), out: cmd.OutOrStdout(), printer: printer}
		if at.connected != nil {
			out.greeted = func() { at.connected(k) }
		}
		errs := &lineWriter{prefix: out.prefix, out: cmd.ErrOrStderr(), printer: printer}
		c.Stdout, c.Stderr = out, errs
		programs[k], lines[k] = c, [2]*lineWriter{out, errs}
	}
	if r.stdin {
		if err := forward(cmd.InOrStdin(), programs[0]); err != nil {
			return err
		}
	}
	grace, others := time.Duration(0), "were ended"
	if r.keepGoing {
		grace, others = math.MaxInt64, "went on"
	}
	err = launch.RunAll(ctx, at.start, programs, grace, func(k int, _ error) {
		lines[k][0].flush()
		lines[k][1].flush()
		if at.connected != nil {
			at.connected(k) // or it has failed to
		}
	})
	flushAll(lines, time.After(flushTimeout))
	if cause := context.Cause(ctx); errors.Is(cause, syscall.EPIPE) {
		return cause // nobody reads, and that is why the programs ended
	}
	var status *cli.StatusError
	if errors.As(err, &status) {
		cmd.PrintErrf("rawlane run: %v; the others %s\n", status, others)
	}
	return err
}

// program is that of one of so many nodes.
func (r *runVerb) program(at *place, node, nodes int, hostfile string, args []string) (*exec.Cmd, error) {
	env := []string{start.EnvNode + "=" + strconv.Itoa(node), start.EnvNodes + "=" + strconv.Itoa(nodes)}
	env = append(env, at.env(node)...)
	if at.remote != nil {
		return at.remote(node, args, env)
	}
	c := exec.Command(args[0], args[1:]...)
	// Not what tells this process, or another launcher's, of their own links.
	c.Env = append(launch.ShareOfCores(nodes), start.EnvListen+"=", start.EnvSeeds+"=", start.EnvSegment+"=")
	c.Env = append(c.Env, start.EnvHostfile+"="+hostfile, launch.EnvKeyFile+"="+r.keyFile)
	c.Env = append(c.Env, env...)
	return c, nil
}

// flushTimeout is how long unfinished last lines are waited for where nobody takes what is printed.
const flushTimeout = time.Second

// flushAll writes the unfinished last lines of outputs that processes still hold open, until nobody
// waits for that any more.
func flushAll(lines [][2]*lineWriter, timeout <-chan time.Time) {
	all := make(chan struct{})
	go func() { // until somebody takes it, or the process ends
		for _, of := range lines {
			of[0].flush()
			of[1].flush()
		}
		close(all)
	}()
	select {
	case <-all:
	case <-timeout:
	}
}

// place is where the programs run.
type place struct {
	start launch.Starter
	hosts []string                // lines of the host file
	env   func(node int) []string // what tells a program of its links
	close func() error

	nodes  int                                                         // how many, if the place says so
	remote func(node int, args, env []string) (c *exec.Cmd, err error) // nil: the programs run on this host
	// connected is told which program's agent has greeted, and which program has ended.
	connected func(node int)
}

// place finds a place for the nodes: namespaces, or, where there are none and no other link than
// udp was asked for, addresses of this host. Shared memory needs none of them.
func (r *runVerb) place(cmd *cobra.Command, program string) (*place, error) {
	if r.hosts != "" {
		return r.onHosts(cmd, program)
	}
	if r.link == launch.OverSHM {
		return r.besides(cmd)
	}
	at, err := r.onNetwork(cmd)
	if err != nil || r.segment == "" {
		return at, err
	}
	dir, err := launch.SegmentDir()
	if err != nil {
		_ = at.close() // the first error is the one to report
		return nil, err
	}
	network, closeNetwork := at.env, at.close
	at.env = func(k int) []string { return append(network(k), segmentEnv(r.segment, dir)...) }
	at.close = func() error { return errors.Join(closeNetwork(), os.RemoveAll(dir)) }
	return at, nil
}

// segmentEnv is what tells a program where links over shared memory meet.
func segmentEnv(name, dir string) []string {
	return []string{start.EnvSegment + "=" + name, launch.EnvSegmentDir + "=" + dir}
}

// onNetwork is the place of programs that have a network.
func (r *runVerb) onNetwork(cmd *cobra.Command) (*place, error) {
	bed, err := testbed.Open(r.cfg)
	if err == nil {
		at := &place{start: launch.StartIn(bed), close: bed.Close}
		at.env = func(int) []string {
			return []string{start.EnvLink + "=" + r.link, start.EnvInterfaces + "=" + launch.Interfaces(r.cfg.NICs)}
		}
		for k := range r.cfg.Nodes {
			for nic := range r.cfg.NICs {
				at.hosts = append(at.hosts, fmt.Sprintf("%d %v %s", k, testbed.MAC(k, nic), testbed.Interface(nic)))
			}
		}
		return at, nil
	}
	if !launch.Refused(err) || r.cfg.NICs > 1 || r.link != "" && r.link != "udp" {
		return nil, err
	}
	cmd.PrintErrf("rawlane: "+launch.NoNamespaces+"\n", err)
	here, err := launch.LoopbackAddrs(r.cfg.Nodes)
	at := &place{start: launch.StartHere, close: func() error { return nil }}
	at.env = func(k int) []string {
		return []string{start.EnvLink + "=udp", start.EnvListen + "=" + here[k], start.EnvSeeds + "=" + here[0]}
	}
	for k, addr := range here {
		at.hosts = append(at.hosts, fmt.Sprintf("%d %s", k, addr))
	}
	return at, err
}

// besides is the place of programs that reach each other through shared memory.
func (r *runVerb) besides(cmd *cobra.Command) (*place, error) {
	if r.cfg.NICs > 1 {
		return nil, cli.Misuse("--nics %d: links over shared memory have one network (want 1)", r.cfg.NICs)
	}
	if cmd.Flags().Changed("mtu") {
		return nil, cli.Misuse("--mtu: is for network interfaces (not with --link shm)")
	}
	dir, err := launch.SegmentDir()
	if err != nil {
		return nil, err
	}
	at := &place{start: launch.StartHere, close: func() error { return os.RemoveAll(dir) }}
	at.env = func(int) []string {
		return append(segmentEnv(cmp.Or(r.segment, "run"), dir), start.EnvLink+"="+r.link)
	}
	return at, nil
}

// forward copies an input to a program that is started later. The program is in a process group of
// its own, and may not read from a terminal itself.
func forward(from io.Reader, to *exec.Cmd) error {
	in, err := to.StdinPipe()
	if err != nil {
		return err
	}
	go func() { // until the input ends, or the program, or this process
		_, _ = io.Copy(in, from) // a program need not read all
		_ = in.Close()           // it may be closed already
	}()
	return nil
}

// findProgram reports whether a program is there to be run.
func findProgram(name string) error {
	_, err := exec.LookPath(name)
	var failed *exec.Error
	switch {
	case errors.Is(err, exec.ErrDot):
		return fmt.Errorf("program %q: it is in this folder, which is not in PATH (want ./%s)", name, name)
	case errors.Is(err, exec.ErrNotFound):
		return fmt.Errorf("program %q: not found in PATH (want its path, as ./%s)", name, name)
	case errors.As(err, &failed):
		var where *fs.PathError
		if errors.As(failed.Err, &where) {
			failed.Err = where.Err
		}
		return fmt.Errorf("program %q: %w", name, failed.Err)
	}
	return err
}

// writeHostfile writes the nodes to a temporary host file; "" if they find each other without one.
func writeHostfile(at *place) (path string, err error) {
	if at.hosts == nil {
		return "", nil
	}
	f, err := os.CreateTemp("", "rawlane-hosts-")
	if err != nil {
		return "", fmt.Errorf("make a host file: %w", cli.FolderError("", err))
	}
	_, err = f.WriteString(strings.Join(at.hosts, "\n") + "\n")
	if err = errors.Join(err, f.Close()); err != nil {
		_ = os.Remove(f.Name()) // what there is of it
	}
	return f.Name(), err
}

// printer lets one program print at a time.
type printer struct {
	sync.Mutex                 // held for one line
	failed     func(err error) // called when a line cannot be written
}

// maxLine bounds a line, in bytes without its end: a longer one is printed as several.
const maxLine = 64 << 10

// lineWriter writes whole lines, each after a prefix.
type lineWriter struct {
	prefix  string
	out     io.Writer
	printer *printer
	mu      sync.Mutex // of what follows: flush may come beside a Write
	rest    []byte     // of a line that has not ended: maxLine at most
	greeted func()     // called for the agent's greeting, which is not printed; nil: there is none
}

func (w *lineWriter) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.rest = append(w.rest, b...)
	for {
		end := bytes.IndexByte(w.rest[:min(len(w.rest), maxLine+1)], '\n')
		line := w.rest[:end+1]
		if end < 0 {
			if len(w.rest) <= maxLine {
				return len(b), nil
			}
			end = maxLine - 1
			line = append(w.rest[:maxLine:maxLine], '\n')
		}
		if err := w.line(line); err != nil {
			return 0, err
		}
		w.rest = w.rest[end+1:]
	}
}

func (w *lineWriter) line(b []byte) error {
	// A pseudo-terminal, as of "ssh -tt", ends lines with a carriage return, too.
	before, isGreeting := bytes.CutSuffix(bytes.TrimRight(b, "\r\n"), []byte(agentGreeting))
	if w.greeted != nil && isGreeting {
		w.greeted()
		w.greeted = nil
		if len(before) == 0 {
			return nil
		}
		b = append(before, '\n') // what a login shell says before
	}
	w.printer.Lock()
	defer w.printer.Unlock()
	_, err := fmt.Fprintf(w.out, "%s%s", w.prefix, b)
	if err != nil {
		w.printer.failed(err)
	}
	return err
}

// flush writes an unfinished last line.
func (w *lineWriter) flush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.rest) > 0 {
		_ = w.line(append(w.rest, '\n')) // the printer hears of an error
		w.rest = nil
	}
}
