package testbed

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/transport/udp"
)

// sshCommand is how other hosts are reached: it asks nothing, as nobody could answer for many, and
// ends when a host does not answer any more.
const sshCommand = "ssh -o BatchMode=yes -o ConnectTimeout=20 -o ServerAliveInterval=15"

// maxShells is how many hosts are prepared at a time.
const maxShells = 64

// maxConnecting is how many connections to one host may be on their way: of more than ten that have
// not yet told who they are a server of ssh refuses some (MaxStartups).
const maxConnecting = 8

// pins are the values of --pin.
var pins = []string{"auto", "none"}

// checkHosts checks the flags of programs on other hosts.
func (r *runVerb) checkHosts(cmd *cobra.Command) error {
	for _, name := range []string{"remote-shell", "interface", "pin"} {
		if r.hosts == "" && cmd.Flags().Changed(name) {
			return cli.Misuse("--%s: for programs on other hosts (want --hosts FILE)", name)
		}
	}
	for _, name := range []string{"nics", "mtu", "segment"} {
		if r.hosts != "" && cmd.Flags().Changed(name) {
			return cli.Misuse("--%s: for programs on this host (not with --hosts)", name)
		}
	}
	if !slices.Contains(pins, r.pin) {
		return cli.NotOneOf("pin", r.pin, pins...)
	}
	if strings.TrimSpace(r.shell) == "" {
		return cli.Misuse("--remote-shell: empty (want a command, such as %q)", sshCommand)
	}
	return nil
}

// checkBounds checks how many programs there are to be: a list of hosts bounds them itself.
func (r *runVerb) checkBounds() error {
	if r.hosts == "" {
		return validBed(&r.cfg, "-n")
	}
	if r.cfg.Nodes < 1 {
		return cli.Misuse("-n %d: want 1 or more", r.cfg.Nodes)
	}
	return nil
}

// remote is a run on other hosts.
type remote struct {
	shell   []string
	program string            // its file here
	hosts   []string          // of each node
	machine []string          // of each node: the first name of its host in the list
	share   map[string]int    // how many nodes a machine has
	slot    []int             // of each node, among those of its machine
	is      map[string]string // what a host says which machine it is, and of which user; "" if it does not
	folders map[string]string // on each host: what was copied there
	addrs   []string          // of nodes that meet by UDP, each with its port; nil: they do not
	job     string
	verb    *runVerb
	say     func(format string, args ...any) // tells the user

	mu   sync.Mutex
	left map[string]string // of folders: what is not removed

	connecting map[string]chan struct{} // has an element for each connection to a host that is on its way
	connected  []func()                 // of each node, once it is started
}

// onHosts prepares the hosts, and returns the place that they are.
func (r *runVerb) onHosts(cmd *cobra.Command, program string) (at *place, err error) {
	f, err := cli.OpenFile("--hosts", r.hosts, "want a line for each host: NAME, NAME:SLOTS or NAME slots=SLOTS")
	if err != nil {
		return nil, err
	}
	list, err := parseHosts(r.hosts, f)
	_ = f.Close() // read only
	if err != nil {
		return nil, err
	}
	total := 0
	for _, s := range list {
		total += s.count
	}
	n := total
	if cmd.Flags().Changed("nodes") {
		n = r.cfg.Nodes
	}
	if n > total {
		return nil, cli.Misuse("-n %d: %s has %d slots (want at most as many)", n, r.hosts, total)
	}
	if n > cluster.MaxNodes {
		return nil, cli.Misuse("%d programs on the slots of %s (want -n, and at most %d)", n, r.hosts, cluster.MaxNodes)
	}
	path, err := exec.LookPath(program)
	if err != nil {
		return nil, err
	}
	shell := strings.Fields(r.shell)
	if _, err := exec.LookPath(shell[0]); err != nil {
		return nil, fmt.Errorf("--remote-shell: %w (want a command that is there, such as %q)", err, sshCommand)
	}
	job := &remote{
		shell: shell, program: path, hosts: spread(list, n), is: map[string]string{},
		folders: map[string]string{}, left: map[string]string{}, job: rand.Text(), verb: r, say: cmd.PrintErrf,
		connecting: map[string]chan struct{}{}, connected: make([]func(), n),
	}
	for _, h := range job.hosts {
		job.connecting[h] = make(chan struct{}, maxConnecting)
	}
	job.count()
	stop := job.hearSignals()
	if err = job.findAddrs(cmd.Context()); err == nil {
		err = job.prepare(cmd.Context())
	}
	if names := len(job.share); err == nil {
		if job.count(); len(job.share) < names { // what follows from it is another thing
			job.addrs = nil
			err = job.findAddrs(cmd.Context())
		}
	}
	if cmd.Context().Err() != nil {
		err = context.Cause(cmd.Context()) // not what became of the shells
	}
	tidyUp := func() error { defer stop(); return job.tidyUp() }
	if err != nil {
		_ = tidyUp() // it says what stays
		return nil, err
	}
	return &place{
		start: job.start, env: job.env, close: tidyUp, nodes: n, remote: job.command,
		connected: func(node int) { job.connected[node]() },
	}, nil
}

// count tells machines apart, which may have several names in the list, as far as they are known,
// and counts the nodes of each.
func (r *remote) count() {
	r.machine, r.slot, r.share = nil, nil, map[string]int{}
	first := map[string]string{} // name of a machine
	for _, h := range r.hosts {
		is := cmp.Or(r.is[h], "host "+h)
		first[is] = cmp.Or(first[is], h)
		m := first[is]
		r.machine = append(r.machine, m)
		r.slot = append(r.slot, r.share[m])
		r.share[m]++
	}
}

// start connects to a node's host, and runs its program there, when there is room for another
// connection.
func (r *remote) start(ctx context.Context, node int, p *exec.Cmd) error {
	connecting := r.connecting[r.hosts[node]]
	select {
	case connecting <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	r.connected[node] = sync.OnceFunc(func() { <-connecting })
	err := p.Start()
	if err != nil {
		r.connected[node]()
	}
	return err
}

// findAddrs finds where nodes listen for UDP, if some share a host and others do not.
func (r *remote) findAddrs(ctx context.Context) error {
	link := r.verb.link
	shared := len(r.share) < len(r.hosts)
	switch {
	case link == "shm" && len(r.share) > 1:
		return cli.Misuse("--link shm: the programs are on %d hosts", len(r.share))
	case link == "udp" || link == "" && shared && len(r.share) > 1:
	case shared && link != "" && link != "shm":
		return cli.Misuse("--link %s: several programs share a host, and so the address of its network interface"+
			" (want one to a host, or --link udp)", link)
	default:
		return nil
	}
	all := map[string][]net.IPAddr{} // asked for once: names may have several
	for _, host := range r.hosts {
		if all[host] != nil {
			continue
		}
		found, err := r.lookup(ctx, host)
		if err != nil {
			return err
		}
		all[host] = found
	}
	ips, err := oneFamily(r.hosts, all)
	if err != nil {
		return fmt.Errorf("%w (want names or addresses in %s of one family)", err, r.verb.hosts)
	}
	programs := map[string]int{} // at an address: a host may have several names in the list
	local, other := "", ""       // hosts with a loopback address, and with another one
	for _, host := range r.hosts {
		ip := ips[host]
		if ip.IP.IsLoopback() {
			local = host
		} else {
			other = host
		}
		at := ip.String()
		r.addrs = append(r.addrs, net.JoinHostPort(at, strconv.Itoa(udp.DefaultPort+programs[at])))
		programs[at]++
	}
	if n := fitting(r.addrs); n < len(r.addrs) {
		return cli.Misuse("%d programs meet by UDP: the addresses of %d fit into an argument "+
			"(want -n, and at most as many, or one program to a host, without --link udp)", len(r.addrs), n)
	}
	if local != "" && other != "" { // as some systems have it for their own name
		return fmt.Errorf("host %s: its address is %s here, by which %s does not reach it "+
			"(want a name or an address in %s by which all do)", local, ips[local].IP, other, r.verb.hosts)
	}
	return nil
}

// maxAddrs bounds the addresses of all programs, in bytes: a program is told them by an argument of
// a remote shell, which may have 128 KiB (MAX_ARG_STRLEN of Linux), with all else that it says.
const maxAddrs = 120 << 10

// fitting is how many of the addresses there is room for.
func fitting(addrs []string) int {
	size := 0
	for k, a := range addrs {
		if size += len(a) + len(","); size > maxAddrs {
			return k
		}
	}
	return len(addrs)
}

// oneFamily chooses an address for each host, of one family, as a socket has: IPv4 if all have it.
func oneFamily(hosts []string, all map[string][]net.IPAddr) (map[string]net.IPAddr, error) {
	without := map[bool]string{} // a host that has no address of IPv4 (true), or IPv6
	for _, four := range []bool{true, false} {
		chosen := map[string]net.IPAddr{}
		for _, host := range hosts {
			k := slices.IndexFunc(all[host], func(ip net.IPAddr) bool { return (ip.IP.To4() != nil) == four })
			if k < 0 {
				without[four] = host
				break
			}
			chosen[host] = all[host][k]
		}
		if without[four] == "" {
			return chosen, nil
		}
	}
	return nil, fmt.Errorf("host %s has no IPv4 address, and %s no IPv6 address: they do not reach each other",
		without[true], without[false])
}

// lookup returns a host's IP addresses, one at least: ssh knows aliases.
func (r *remote) lookup(ctx context.Context, host string) ([]net.IPAddr, error) {
	name := host[strings.LastIndexByte(host, '@')+1:]
	if filepath.Base(r.shell[0]) == "ssh" {
		args := append(append([]string{}, r.shell[1:]...), "-G", host)
		out, err := exec.CommandContext(ctx, r.shell[0], args...).Output()
		if err != nil {
			return nil, fmt.Errorf("ssh -G %s: %w", host, err)
		}
		for line := range strings.Lines(string(out)) {
			if is, ok := strings.CutPrefix(line, "hostname "); ok {
				name = strings.TrimSpace(is)
			}
		}
	}
	ips, err := net.DefaultResolver.LookupIPAddr(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("host %s: %w", host, err)
	}
	return ips, nil
}

// What begins the lines in which unpack prints which machine a host is, and the folder it has made.
const (
	machineIs = "rawlane-machine "
	folderIs  = "rawlane-folder "
)

// unpack says which machine this is, whose network namespace and which user, where there is such a
// thing, makes a folder, and prints its name. If what it is to hold does not arrive whole, or
// nobody hears the name, nothing stays.
const unpack = `umask 077; trap "" HUP INT PIPE TERM; ` +
	`m=$({ cat /proc/sys/kernel/random/boot_id && readlink /proc/self/ns/net && id -u; } 2> /dev/null) && ` +
	`echo ` + machineIs + `$m; ` +
	`d=$(mktemp -d "${TMPDIR:-/tmp}/rawlane-XXXXXXXX") || exit; ` +
	`tar xf - -C "$d" && echo ` + folderIs + `"$d" || { rm -rf "$d"; exit 1; }`

// prepareDelay is how long a process may hold the output of a remote shell open that has ended.
const prepareDelay = 2 * time.Second

// prepare copies to each host what runs there.
func (r *remote) prepare(ctx context.Context) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	err = errors.Join(addFile(w, "rawlane", self, 0o700), addFile(w, r.name(), r.program, 0o700))
	if r.verb.keyFile != "" {
		err = errors.Join(err, addFile(w, "key", r.verb.keyFile, 0o600))
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	var errs error
	onEach(r.share, func(host string) {
		c := r.on(ctx, host, unpack)
		c.Cancel = func() error { return c.Process.Signal(syscall.SIGTERM) } // unpack does not stop half-way
		c.Stdin = bytes.NewReader(archive.Bytes())
		c.WaitDelay = prepareDelay
		var says bytes.Buffer
		c.Stderr = &says
		out, err := c.Output()
		if errors.Is(err, exec.ErrWaitDelay) {
			err = nil // the shell itself has ended well
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		folder := madeFolder(string(out))
		if folder != "" {
			r.folders[host], r.left[host] = folder, folder
			r.is[host] = machine(string(out))
		}
		if err != nil || folder == "" {
			err = fmt.Errorf("host %s: %w", host, cmp.Or(err, errNoFolder))
			if said := strings.TrimSpace(says.String()); said != "" {
				err = fmt.Errorf("%w: %s", err, said)
			}
			errs = errors.Join(errs, err)
		}
	})
	return errs
}

// onEach calls do for each host, for maxShells at a time.
func onEach[T any](hosts map[string]T, do func(host string)) {
	var all sync.WaitGroup
	room := make(chan struct{}, maxShells)
	for host := range hosts {
		all.Go(func() {
			room <- struct{}{}
			defer func() { <-room }()
			do(host)
		})
	}
	all.Wait()
}

// folderName matches the names that unpack gives.
var folderName = regexp.MustCompile(`^/(.*/)?rawlane-[0-9A-Za-z]{8}$`)

// machine is what unpack has printed of the machine, if it has.
func machine(out string) string { return lineOf(out, machineIs) }

// madeFolder is the folder that unpack has printed, among what login shells and their wrappers say;
// "" if none was made. It is removed in the end: nothing else is believed to be one. Where the
// shell has failed, as with its connection, it may be there all the same.
func madeFolder(out string) string {
	if folder := lineOf(out, folderIs); folderName.MatchString(folder) {
		return folder
	}
	return ""
}

// lineOf returns the first line that begins so, without its beginning.
func lineOf(out, beginning string) string {
	for line := range strings.Lines(out) {
		if rest, ok := strings.CutPrefix(line, beginning); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

// name is the program's in the folder: its messages begin with the last part.
func (r *remote) name() string { return "program/" + filepath.Base(r.program) }

var errNoFolder = errors.New("no folder was made")

// addFile adds a file of this host to an archive.
func addFile(w *tar.Writer, name, path string, mode int64) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: mode, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// on is a command of a host's POSIX shell, whatever the user's login shell is.
func (r *remote) on(ctx context.Context, host, command string) *exec.Cmd {
	args := append(append([]string{}, r.shell[1:]...), host, "exec sh -c "+cli.Quote(command))
	return exec.CommandContext(ctx, r.shell[0], args...)
}

// command runs a node's program on its host, until it ends or the connection does. To cancel it
// asks the agent to end the program, which then says its last words; but for the program that has
// the standard input.
func (r *remote) command(node int, args, env []string) (*exec.Cmd, error) {
	host := r.hosts[node]
	folder := r.folders[host]
	share := strconv.Itoa(r.share[r.machine[node]])
	words := []string{folder + "/rawlane", "agent", "--folder", folder, "--share", share}
	if r.verb.pin == "auto" {
		words = append(words, "--pin", strconv.Itoa(r.slot[node]))
	}
	hasInput := r.verb.stdin && node == 0
	if hasInput {
		words = append(words, "--stdin")
	}
	for _, e := range env {
		words = append(words, "-e", e)
	}
	words = append(append(words, "--", folder+"/"+r.name()), args[1:]...)
	for k, w := range words {
		words[k] = cli.Quote(w)
	}
	here := "" // the folder of this name, where there is one, as on a shared disk
	if folder, err := os.Getwd(); err == nil {
		here = "cd " + cli.Quote(folder) + " 2>/dev/null; "
	}
	c := r.on(context.Background(), host, here+"exec "+strings.Join(words, " ")) // RunAll ends it
	if c.Cancel = nil; hasInput {
		return c, nil
	}
	agent, err := c.StdinPipe()
	c.Cancel = func() error { _, err := io.WriteString(agent, "\n"); return err }
	return c, err
}

// env tells a node's program of its links.
func (r *remote) env(node int) []string {
	host := r.hosts[node]
	env := []string{start.EnvJob + "=" + r.job, start.EnvInterfaces + "=" + r.verb.iface}
	// Not what is there for a program that another launcher has started.
	env = append(env, start.EnvListen+"=", start.EnvSeeds+"=", start.EnvSegment+"=", start.EnvHostfile+"=")
	if r.verb.keyFile != "" { // else a host's own counts: to clear it would switch authentication off
		env = append(env, start.EnvKeyFile+"="+r.folders[host]+"/key")
	}
	link := r.verb.link
	switch {
	case r.addrs != nil:
		link = "udp"
		env = append(env, start.EnvListen+"="+r.addrs[node], start.EnvSeeds+"="+strings.Join(r.addrs, ","))
	case link == "" && len(r.share) == 1:
		link = launch.OverSHM
	}
	if r.share[r.machine[node]] > 1 {
		env = append(env, start.EnvSegment+"=job-"+r.job)
	}
	return append(env, start.EnvLink+"="+link)
}
