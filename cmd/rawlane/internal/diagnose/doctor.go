package diagnose

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/cmd/rawlane/internal/launch"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/udp"
	"github.com/rawlane/rawlane/transport/xdp"
)

// NewDoctorCommand returns the verb doctor.
func NewDoctorCommand() *cobra.Command {
	var asJSON bool
	var only string
	var paths []string
	cmd := &cobra.Command{
		Use:   "doctor [--interface NAME] [--path ADDRESS,...]",
		Short: "Say what this machine and its NICs can do, and how to mend what they can't",
		Long: `Tries each kind of link on each network interface, and looks at the settings of its NIC that
matter: driver, queues, MTU, coalescing, VLAN filter, trains. For what does not work it says why,
and the command that mends it; for what makes messages wait (coalescing, where interrupts are handled,
idle states, busy polling, the CPU governor), what a change gains. It changes nothing. With --path it
sends packets to where udp links of other nodes listen, and says how long they may be on the way, as
far as routers tell; not whether somebody is there.

It exits with 1 if a path that --path names has a "NO", or no kind of link works on the interface
that --interface names; what else does not work counts for nothing.

  rawlane doctor
  rawlane doctor --interface eth0
  rawlane doctor --path 10.0.0.2:27401,node3`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPaths(paths); err != nil {
				return err
			}
			d, err := diagnose(only)
			if err != nil {
				return err
			}
			for _, addr := range paths {
				d.Paths = append(d.Paths, examinePath(cmd.Context(), addr))
			}
			if err := cli.Write(cmd.OutOrStdout(), asJSON, d, d.print); err != nil {
				return err
			}
			return d.verdict(only)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	cmd.Flags().StringVar(&only, "interface", "", "look at this interface alone")
	cmd.Flags().StringSliceVar(&paths, "path", nil,
		"find out the MTU of the paths to these `ADDRESS[:PORT]` of udp links")
	launch.InterfaceChoice(cmd)
	return cmd
}

// verdict is an error if something does not work that was named: a path, or the one interface.
func (d *diagnosis) verdict(only string) error {
	var bad []string
	works := func(f finding) bool { return f.OK }
	if only != "" && !slices.ContainsFunc(d.Interfaces[0].Links, works) {
		bad = append(bad, "any link on "+only)
	}
	for _, f := range d.Paths {
		if !f.OK {
			bad = append(bad, f.Name)
		}
	}
	if len(bad) == 0 {
		return nil
	}
	return fmt.Errorf("not as it should be: %s (what is printed says why)", strings.Join(bad, "; "))
}

// doctorSchema is the version of diagnosis as JSON. docs/bench-json.md describes it.
const doctorSchema = 1

// diagnosis is the result of the doctor.
type diagnosis struct {
	Schema     int          `json:"schema"`
	Host       launch.Host  `json:"host"`
	Checks     []finding    `json:"checks"`
	Latency    []finding    `json:"latency,omitempty"` // settings that make messages wait
	Paths      []finding    `json:"paths,omitempty"`
	Interfaces []nicFinding `json:"interfaces"`
}

// finding is the result of one check: OK, or the reason and the cure.
type finding struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Reason string `json:"reason,omitempty"`
	Gain   string `json:"gain,omitempty"`
	Cure   string `json:"cure,omitempty"`
}

// nicFinding is the results for a network interface.
type nicFinding struct {
	Name string `json:"name"`
	MAC  string `json:"mac"`
	MTU  int    `json:"mtu"`
	launch.NICFacts
	Links   []finding `json:"links"`
	Advice  []finding `json:"advice"`
	Latency []finding `json:"latency,omitempty"`
}

func diagnose(only string) (*diagnosis, error) {
	all, err := net.Interfaces()
	if err != nil {
		return nil, fmt.Errorf("list the network interfaces: %w", err)
	}
	d := &diagnosis{Schema: doctorSchema, Host: launch.ThisHost("", 0), Checks: []finding{
		{Name: "fabric links (in memory)", OK: true},
		checkRaw(),
		checkNamespaces(),
		checkMemory(),
		checkCores(),
	}, Latency: thisMachine().ofHost()}
	for _, i := range all {
		if only == "" && i.Flags&net.FlagLoopback == 0 || i.Name == only {
			d.Interfaces = append(d.Interfaces, examine(&i))
		}
	}
	if only != "" && len(d.Interfaces) == 0 {
		var names []string
		for _, i := range all {
			names = append(names, i.Name)
		}
		return nil, fmt.Errorf("%s: %w (there are: %s)", only, transport.ErrNoInterface, strings.Join(names, ", "))
	}
	return d, nil
}

// judge makes the finding of a check that has come to err.
func judge(name string, err error, cure string) finding {
	if err == nil {
		return finding{Name: name, OK: true}
	}
	return finding{Name: name, Reason: err.Error(), Cure: cure}
}

// checkRaw tries to open a raw socket.
func checkRaw() finding {
	err := launch.TryRawSocket()
	cure := rawCure()
	if errors.Is(err, transport.ErrNotSupported) {
		cure = "use Linux; the fabric works everywhere"
	}
	return judge("raw sockets (CAP_NET_RAW), for packet and ring links on this machine's NICs", err, cure)
}

// rawCure is the cure for a lack of CAP_NET_RAW.
func rawCure() string {
	program, err := os.Executable()
	if err != nil {
		program = "PROGRAM"
	}
	return setcapCure(program)
}

func setcapCure(program string) string {
	return "run as root, or: sudo setcap cap_net_raw+ep " + cli.ShellWord(program) + ", or have root run: rawlane grant"
}

// checkNamespaces looks whether kernel links between namespaces can be had: demo, bench, run,
// testbed.
func checkNamespaces() finding {
	err := testbed.Available()
	if err != nil {
		err = launch.TryUserNamespace()
	}
	return judge("network namespaces, for demo, bench, run and testbed with kernel links", err,
		"run as root, or allow user namespaces: sudo sysctl -w user.max_user_namespaces=10000 "+
			"kernel.unprivileged_userns_clone=1 kernel.apparmor_restrict_unprivileged_userns=0 "+
			"(those of them that your kernel has)")
}

// checkMemory looks whether links over shared memory can be had.
func checkMemory() finding {
	const name = "doctor"
	var links []transport.Link
	var err error
	for range 2 { // those of other doctors may be there, too
		var l transport.Link
		if l, err = shm.Open(name, shm.Config{}); err != nil {
			break
		}
		links = append(links, l)
	}
	for _, l := range links {
		err = errors.Join(err, l.Close())
	}
	cure := "set " + launch.EnvSegmentDir + " to a folder of your own, with mode 0700, on a local file system"
	if errors.Is(err, transport.ErrNotSupported) {
		cure = "use Linux; udp links on the loopback work everywhere"
	}
	if errors.Is(err, syscall.EFBIG) {
		cure = "raise ulimit -f, which is smaller than the memory of two links"
	}
	return judge("shared memory, for shm links between processes of this host", err, cure)
}

// examine tries the links on an interface, and reads the settings of its NIC.
func examine(i *net.Interface) nicFinding {
	n := nicFinding{Name: i.Name, MAC: i.HardwareAddr.String(), MTU: i.MTU, NICFacts: launch.AskDriver(i.Name)}
	n.Links = []finding{
		tryLink("packet", i.Name, func() (transport.Link, error) {
			return packet.Open(i.Name, packet.Config{NoVLANs: true})
		}),
		tryLink("ring", i.Name, func() (transport.Link, error) {
			return ring.Open(i.Name, ring.Config{NoVLANs: true})
		}),
		tryXDP(i.Name),
		tryLink("udp", i.Name, func() (transport.Link, error) {
			return udp.OpenInterface(i.Name, udp.Config{})
		}),
	}
	n.adviseOccupied()
	n.adviseAll(i.Flags)
	n.Latency = slices.Concat(n.coalescing(), thisMachine().ofNIC(i.Name, n.MAC))
	return n
}

// adviseAll says what of the NIC's settings and state a user may want to change.
func (n *nicFinding) adviseAll(flags net.Flags) {
	if flags&net.FlagUp != 0 && flags&net.FlagRunning == 0 {
		n.advise("no carrier: frames go nowhere", "plug the cable in, or set the other end up")
	}
	if n.VLANFilter {
		n.advise("the NIC drops frames of VLANs that nobody registered: "+
			"links that receive tags make it promiscuous while they are open",
			fmt.Sprintf("to spare that: sudo ethtool -K %s rx-vlan-filter off", n.Name))
	}
	if n.Driver == "e1000" && n.VLANStrip {
		n.advise("the driver e1000 drops the priority of received tags, and hands on the VID alone",
			fmt.Sprintf("to have tags whole: sudo ethtool -K %s rx-vlan-offload off", n.Name))
	}
}

// thisMachine is the settings of the machine that this process runs on.
func thisMachine() tuning { return tuning{os.DirFS("/")} }

// trains says what the NIC and the kernel do with trains.
func (n *nicFinding) trains() string {
	cutter, arrival := "the kernel cuts them before they leave", "those that come cut stay cut"
	if n.Segments {
		cutter = "the NIC cuts them"
	}
	if n.Joins {
		arrival = "those that come cut are joined"
	}
	return fmt.Sprintf("%s (tx-udp-segmentation %s); %s (rx-gro with rx-udp-gro-forwarding %s)",
		cutter, onOff(n.Segments), arrival, onOff(n.Joins))
}

func (n *nicFinding) advise(reason, cure string) {
	n.Advice = append(n.Advice, finding{Name: n.Name, Reason: reason, Cure: cure})
}

func tryLink(kind, name string, open func() (transport.Link, error)) finding {
	l, err := open()
	if err == nil {
		_ = l.Close() // it was only a try
	}
	if errors.Is(err, syscall.EADDRINUSE) { // by a node that runs, on the port of a udp link
		return finding{Name: kind, OK: true,
			Reason: "its port is in use: by a link that is open, or by another program, which would have to end"}
	}
	return judge(kind, err, linkCure(name, err, rawCure))
}

// linkCure is the cure for a link that cannot be opened on an interface that there is.
func linkCure(name string, err error, forbidden func() string) string {
	switch {
	case errors.Is(err, transport.ErrInterfaceDown):
		return "sudo ip link set " + name + " up"
	case errors.Is(err, transport.ErrNoInterface): // of link udp: none with an IP address
		return fmt.Sprintf("sudo ip link set %s up && sudo ip addr add ADDRESS/LENGTH dev %s", name, name)
	case errors.Is(err, transport.ErrPermission):
		return forbidden()
	}
	return ""
}

// adviseOccupied says what a link over AF_XDP takes from the others.
func (n *nicFinding) adviseOccupied() {
	_, err := xdp.Probe(n.Name)
	var occupied *xdp.OccupiedError
	if errors.As(err, &occupied) && occupied.Ours() {
		n.advise("a link xdp is open here: links ring and packet receive nothing of its EtherType",
			fmt.Sprintf("end process %d, or open link ring in all programs", occupied.PID))
	}
}

// tryXDP says whether there can be a link over AF_XDP, and in which mode. To open one would start
// many NICs anew.
func tryXDP(name string) finding {
	best, err := xdp.Probe(name)
	kind := "xdp"
	if err == nil && best != xdp.ModeAuto {
		kind += fmt.Sprintf(" (%v)", best)
	}
	return judge(kind, err, linkCure(name, err, func() string {
		return "run as root, or have root run: rawlane grant, with a line that says xdp yes"
	}))
}

func (d *diagnosis) print(out io.Writer) {
	h := &d.Host
	fmt.Fprintf(out, "%s, %s, kernel %s, %d cores\n%s, rawlane %s\n\n", h.CPU, h.OS, h.Kernel, h.Cores, h.Go, h.Rawlane)
	for _, f := range d.Checks {
		f.print(out, "")
	}
	for _, f := range d.Paths {
		f.print(out, "")
	}
	printLatency(out, "", d.Latency)
	if len(d.Interfaces) == 0 {
		fmt.Fprintf(out, "\nNo network interface besides the loopback.\n")
	}
	for i := range d.Interfaces {
		d.Interfaces[i].print(out)
	}
}

func (f *finding) print(out io.Writer, indent string) {
	mark := "yes"
	if !f.OK {
		mark = "NO "
	}
	fmt.Fprintf(out, "%s%s  %s\n", indent, mark, f.Name)
	f.printWhy(out, indent)
}

func (f *finding) printWhy(out io.Writer, indent string) {
	if f.Reason != "" {
		fmt.Fprintf(out, "%s     why:  %s\n", indent, f.Reason)
	}
	if f.Gain != "" {
		fmt.Fprintf(out, "%s     gain: %s\n", indent, f.Gain)
	}
	if f.Cure != "" {
		fmt.Fprintf(out, "%s     mend: %s\n", indent, f.Cure)
	}
}

func (n *nicFinding) print(out io.Writer) {
	fmt.Fprintf(out, "\n%s  %s, MTU %d, driver %s", n.Name, n.MAC, n.MTU, cmp.Or(n.Driver, "unknown"))
	if n.SpeedMbps > 0 {
		fmt.Fprintf(out, ", %d Mb/s", n.SpeedMbps)
	}
	if n.Queues > 0 {
		fmt.Fprintf(out, ", %d queues", n.Queues)
	}
	fmt.Fprintf(out, "\n  coalescing: rx-usecs %d, adaptive-rx %s; rx-vlan-filter %s, rx-vlan-offload %s\n",
		n.RxCoalesceUsec, onOff(n.AdaptiveRx), onOff(n.VLANFilter), onOff(n.VLANStrip))
	fmt.Fprintf(out, "  trains: %s\n", n.trains())
	for _, f := range n.Links {
		f.print(out, "  ")
	}
	for _, f := range n.Advice {
		fmt.Fprintf(out, "  note\n")
		f.printWhy(out, "  ")
	}
	printLatency(out, "  ", n.Latency)
}

// printLatency prints what makes messages wait.
func printLatency(out io.Writer, indent string, all []finding) {
	for _, f := range all {
		fmt.Fprintf(out, "%slatency: %s\n", indent, f.Name)
		f.printWhy(out, indent)
	}
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
