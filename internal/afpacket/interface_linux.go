package afpacket

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/room"
	"github.com/rawlane/rawlane/transport"
)

// Interface is a network interface, as it was when somebody looked for it.
type Interface struct {
	Name      string
	Index     int
	MTU       int // in bytes
	MAC       transport.MAC
	Namespace string // as Namespace names it
	Driver    Driver
}

// FindInterface returns the network interface called name, if it can carry frames.
func FindInterface(name string) (*Interface, error) {
	ifi, err := net.InterfaceByName(name)
	var errno syscall.Errno
	if errors.As(err, &errno) { // the system did not say whether there is one
		return nil, Explain("look for the interface", errno)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (there are: %s)", transport.ErrNoInterface, interfaceNames())
	}
	if ifi.Flags&net.FlagUp == 0 {
		return nil, fmt.Errorf("%w (set it up: ip link set %s up)", transport.ErrInterfaceDown, name)
	}
	mac, err := AddressOf(ifi)
	if err != nil {
		return nil, err
	}
	driver, err := askDriver(ifi)
	if err != nil {
		return nil, err
	}
	return &Interface{ifi.Name, ifi.Index, ifi.MTU, mac, Namespace(), driver}, nil
}

// AddressOf returns the Ethernet address of an interface, which lo and tunnels have not.
func AddressOf(ifi *net.Interface) (transport.MAC, error) {
	mac, err := transport.MACFrom(ifi.HardwareAddr)
	if err != nil {
		return mac, fmt.Errorf("not an Ethernet interface (its address is %q)", ifi.HardwareAddr)
	}
	return mac, nil
}

func interfaceNames() string {
	all, err := net.Interfaces()
	if err != nil || len(all) == 0 {
		return "none"
	}
	var names []string
	for _, i := range all {
		names = append(names, i.Name)
	}
	return strings.Join(names, ", ")
}

// Explain says what was tried when the system returned err, and turns err into an error of package
// transport, with the cure where there is one. No error stays none.
func Explain(act string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", act, explain(err))
}

func explain(err error) error {
	switch {
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		return fmt.Errorf("%w (needs CAP_NET_RAW: run as root or inside a user namespace, "+
			"or setcap cap_net_raw+ep PROGRAM, or have root run: rawlane grant)", transport.ErrPermission)
	case errors.Is(err, unix.ENETDOWN):
		return transport.ErrInterfaceDown
	case errors.Is(err, unix.ENXIO), errors.Is(err, unix.ENODEV):
		return fmt.Errorf("%w: it is gone (open the link anew when it is back)", transport.ErrNoInterface)
	case errors.Is(err, unix.EMSGSIZE):
		return errShrunk
	case errors.Is(err, unix.EAFNOSUPPORT), errors.Is(err, unix.ENOPROTOOPT):
		return fmt.Errorf("%w: %w", transport.ErrNotSupported, err)
	}
	return err
}

// Driver is what the NIC's driver says of it.
type Driver struct {
	// FiltersVLANs: the NIC drops frames of VIDs that nobody has registered, as virtio-net, vmxnet3
	// and many server NICs do. It is false if the driver does not say.
	FiltersVLANs bool
	RxQueues     int  // receive queues, likewise
	NoQueue      bool // it has no queueing discipline: a frame leaves before the call returns
	TxQueues     int  // transmit queues in use or, if the driver does not say, how many there are
	// Fifo: what goes through its queueing discipline leaves in order. fq_codel, systemd's default,
	// and fq let one flow's packets overtake another's: trains are one flow, plain frames others.
	Fifo bool
	// Steers: what it receives is handed over in order by flow alone. Datagrams are held back to be
	// joined (rx-udp-gro-forwarding, rx-gro-list), or flows have processors of their own (RPS).
	Steers bool
}

// askDriver asks the driver of an interface.
func askDriver(ifi *net.Interface) (Driver, error) {
	e, err := room.NewEthtool()
	if err != nil {
		return Driver{}, fmt.Errorf("ask the driver for its features: %w", err)
	}
	defer e.Close()
	features, _ := e.Features(ifi.Name)    // nil if the driver does not say
	channels, _ := e.GetChannels(ifi.Name) // likewise zero
	d := Driver{
		FiltersVLANs: features["rx-vlan-filter"],
		TxQueues:     int(channels.TxCount + channels.CombinedCount),
		RxQueues:     int(channels.RxCount + channels.CombinedCount),
		Steers:       features["rx-udp-gro-forwarding"] || features["rx-gro-list"] || hasRPS(ifi.Name),
	}
	kernel := askKernel(ifi.Index)
	d.NoQueue, d.Fifo = kernel.NoQueue, kernel.Fifo
	if d.TxQueues == 0 {
		d.TxQueues = kernel.TxQueues
	}
	if d.RxQueues == 0 {
		d.RxQueues = kernel.RxQueues
	}
	return d, nil
}

// askKernel returns what the kernel says of an interface: how many queues it keeps, 1 each way if
// it does not say. Bonds, VLAN devices and others without a driver of their own have no other
// answer.
func askKernel(index int) Driver {
	d := Driver{TxQueues: 1, RxQueues: 1}
	for _, a := range LinkAttributes(index) {
		switch {
		case a.Attr.Type == unix.IFLA_NUM_TX_QUEUES && len(a.Value) == 4:
			d.TxQueues = max(int(binary.NativeEndian.Uint32(a.Value)), 1)
		case a.Attr.Type == unix.IFLA_NUM_RX_QUEUES && len(a.Value) == 4:
			d.RxQueues = max(int(binary.NativeEndian.Uint32(a.Value)), 1)
		case a.Attr.Type == unix.IFLA_QDISC:
			qdisc := unix.ByteSliceToString(a.Value)
			d.NoQueue = qdisc == "noqueue"
			d.Fifo = slices.Contains([]string{"noqueue", "pfifo_fast", "pfifo", "bfifo"}, qdisc)
		}
	}
	return d
}

// LinkAttributes returns the attributes of an interface as the kernel's netlink tells them; none if
// it does not.
func LinkAttributes(index int) []syscall.NetlinkRouteAttr {
	rib, err := syscall.NetlinkRIB(syscall.RTM_GETLINK, syscall.AF_UNSPEC)
	if err != nil {
		return nil
	}
	messages, err := syscall.ParseNetlinkMessage(rib)
	if err != nil {
		return nil
	}
	for _, m := range messages {
		if m.Header.Type == syscall.RTM_NEWLINK && len(m.Data) >= syscall.SizeofIfInfomsg &&
			binary.NativeEndian.Uint32(m.Data[4:]) == uint32(index) { // ifinfomsg.ifi_index
			attributes, _ := syscall.ParseNetlinkRouteAttr(&m)
			return attributes
		}
	}
	return nil
}

// hasRPS reports whether the kernel hands what comes by the first receive queue to processors by
// flow (receive packet steering). Where sysfs is not mounted, or has another network namespace's
// interfaces, that is not known.
func hasRPS(name string) bool {
	cpus, err := os.ReadFile(filepath.Join("/sys/class/net", name, "queues/rx-0/rps_cpus"))
	return err == nil && strings.Trim(string(cpus), "0,\n") != ""
}

// Namespace identifies this thread's network namespace, or is "" where the system does not tell. It
// makes part of the names of locks that hold in one namespace, on links used from threads of
// others.
func Namespace() string {
	var st unix.Stat_t
	if unix.Stat("/proc/thread-self/ns/net", &st) != nil {
		return ""
	}
	return fmt.Sprint(st.Ino)
}
