package cluster

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// Host is a node of a host file.
type Host struct {
	Node mcd.NodeID
	NICs []HostNIC
}

// HostNIC is a line of a host file: one NIC of a node. One of MAC, HostName and Addr is set.
type HostNIC struct {
	MAC       transport.MAC
	HostName  string
	Addr      string // of a UDP link: an IP address, perhaps with a port, or a host name with a port
	Interface string // may be empty
	Line      int
}

// ErrHostfile: a fault in a host file. A *SyntaxError says where.
var ErrHostfile = errors.New("bad host file")

// SyntaxError is a fault in a host file. It is ErrHostfile.
type SyntaxError struct {
	File string
	Line int    // 0: the file as a whole
	Msg  string // what was found, and what was expected
}

func (e *SyntaxError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.File, e.Msg)
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

// Is makes errors.Is(err, ErrHostfile) hold.
func (e *SyntaxError) Is(target error) bool { return target == ErrHostfile }

// Hostfile is what a host file says.
type Hostfile struct {
	Hosts   []Host // in the order of their numbers, which are 0 to n-1
	KeyFile string // for mcd.Config.KeyFile; "" if the file names none
}

// ReadHostfile reads a host file; see ParseHostfile.
func ReadHostfile(path string) (*Hostfile, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s: is a folder (want a file with a line for each node)", path)
	}
	return ParseHostfile(path, f)
}

// ParseHostfile reads a host file:
//
//	# number  MAC or host name    interface
//	0         02:00:00:00:00:01   eth0
//	0         02:00:00:00:01:01   eth1       # a second line for a number is its second NIC
//	1         node1               eth0       # the MAC is found by discovery
//	key-file  /etc/rawlane/key               # frames are authenticated
//
// Nodes whose links are UDP's have addresses instead (Stations): 10.0.0.1, 10.0.0.1:7401,
// [fd00::1]:7401 or node1:7401.
//
// The interface may be left out if a host has only one that can be used. The numbers must be 0 to
// n-1. The name of the file is for messages, and a relative name of a key file is in its folder.
// Errors: a *SyntaxError for each line with a fault, joined; also for a MAC that occurs twice and a
// node that has no line.
func ParseHostfile(name string, r io.Reader) (*Hostfile, error) {
	p := newHostfileParser(name)
	if err := p.read(r); err != nil {
		return nil, err
	}
	hosts, err := p.finish()
	if err != nil {
		return nil, err
	}
	if p.keyFile != "" && !filepath.IsAbs(p.keyFile) {
		p.keyFile = filepath.Join(filepath.Dir(name), p.keyFile)
	}
	return &Hostfile{Hosts: hosts, KeyFile: p.keyFile}, nil
}

// read reads all lines.
func (p *hostfileParser) read(r io.Reader) error {
	var faults []error
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		p.line++
		text := lines.Text()
		if p.line == 1 {
			text = strings.TrimPrefix(text, byteOrderMark)
		}
		text, _, _ = strings.Cut(text, "#")
		if fields := strings.Fields(text); len(fields) > 0 && len(faults) < maxFaults {
			if err := p.add(fields); err != nil {
				faults = append(faults, err)
			}
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		p.line++
		return p.fault("longer than %d bytes (want number, MAC or host name, interface on each line)",
			bufio.MaxScanTokenSize)
	} else if err != nil {
		return fmt.Errorf("%s: %w", p.file, err)
	}
	if len(faults) > 0 { // what is missing may stand on these lines
		return errors.Join(faults...)
	}
	return nil
}

// keyFileWord begins the line of a host file that names the key file.
const keyFileWord = "key-file"

func (p *hostfileParser) setKeyFile(fields []string) error {
	if len(fields) != 2 {
		return p.fault("%s: %d names (want one, on one line)", keyFileWord, len(fields)-1)
	}
	if p.keyFile != "" {
		return p.fault("%s is on line %d too (want one, with all keys in it)", keyFileWord, p.lineOf[keyFileWord])
	}
	p.keyFile, p.lineOf[keyFileWord] = fields[1], p.line
	return nil
}

const (
	// byteOrderMark is what some editors write before the first line.
	byteOrderMark = "\ufeff"
	// maxFaults bounds the faults that are reported: a file of another kind has one on each line.
	maxFaults = 20
)

type hostfileParser struct {
	file    string
	line    int
	keyFile string
	hosts   []Host
	lineOf  map[string]int // of a MAC, of an address, or of keyFileWord
}

func newHostfileParser(file string) *hostfileParser {
	return &hostfileParser{file: file, lineOf: make(map[string]int)}
}

func (p *hostfileParser) fault(format string, args ...any) error {
	return &SyntaxError{File: p.file, Line: p.line, Msg: fmt.Sprintf(format, args...)}
}

func (p *hostfileParser) add(fields []string) error {
	if fields[0] == keyFileWord {
		return p.setKeyFile(fields)
	}
	if len(fields) < 2 || len(fields) > 3 {
		return p.fault("%d fields (want 2 or 3: number, MAC or host name, interface)", len(fields))
	}
	number, err := strconv.ParseUint(fields[0], 10, 16)
	if err != nil || mcd.NodeID(number) > mcd.MaxNodeID {
		return p.fault("node number %q (want 0 to %d)", fields[0], mcd.MaxNodeID)
	}
	nic := HostNIC{Line: p.line}
	if len(fields) == 3 {
		nic.Interface = fields[2]
	}
	if err := p.setAddress(&nic, fields[1]); err != nil {
		return err
	}
	return p.place(mcd.NodeID(number), nic)
}

// setAddress reads a NIC's MAC, host name, or address of a UDP link.
func (p *hostfileParser) setAddress(nic *HostNIC, text string) error {
	what := "MAC"
	var key string
	switch mac, err := transport.ParseMAC(text); {
	case err == nil && (mac.IsMulticast() || mac.IsZero()):
		return p.fault("%v is no station's address (want a unicast MAC)", mac)
	case err == nil:
		nic.MAC = mac
		text, key = mac.String(), mac.String()
	case isUDPAddr(text):
		nic.Addr, what, key = text, "address", udp.StationMAC(text).String()
	case validHostName(text):
		nic.HostName = text
		return nil
	default:
		return p.fault("%q is neither a MAC (want 02:00:00:00:00:01) nor a host name, "+
			"nor an address (want 10.0.0.1:7401)", text)
	}
	if line := p.lineOf[key]; line != 0 {
		return p.fault("%s %s is on line %d too (want one line for each NIC)", what, text, line)
	}
	p.lineOf[key] = p.line
	return nil
}

// isUDPAddr reports whether a text is an IP address, or one or a host name with a port.
func isUDPAddr(text string) bool {
	if _, ok := bareIP(text); ok {
		return true
	}
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Port() != 0
	}
	host, port, err := net.SplitHostPort(text)
	n, portErr := strconv.ParseUint(port, 10, 16)
	return err == nil && portErr == nil && n != 0 && validHostName(host)
}

// bareIP returns the IP address that a text is, perhaps in brackets.
func bareIP(text string) (ip netip.Addr, ok bool) {
	bare, opened := strings.CutPrefix(text, "[")
	bare, closed := strings.CutSuffix(bare, "]")
	ip, err := netip.ParseAddr(bare)
	return ip, err == nil && opened == closed
}

func (p *hostfileParser) place(node mcd.NodeID, nic HostNIC) error {
	i := slices.IndexFunc(p.hosts, func(h Host) bool { return h.Node == node })
	if i < 0 {
		p.hosts = append(p.hosts, Host{Node: node, NICs: []HostNIC{nic}})
		return nil
	}
	h := &p.hosts[i]
	for _, other := range h.NICs {
		if other.HostName != nic.HostName || (other.Addr == "") != (nic.Addr == "") {
			return p.fault("node %d is %s here and %s on line %d (want one host for each number)",
				node, nic.about(), other.about(), other.Line)
		}
		if nic.HostName != "" && other.Interface == nic.Interface {
			return p.fault("node %d has interface %q on line %d too (want one line for each NIC)",
				node, nic.Interface, other.Line)
		}
	}
	h.NICs = append(h.NICs, nic)
	return nil
}

func (n *HostNIC) about() string { return cmp.Or(n.HostName, n.Addr, n.MAC.String()) }

// finish checks the file as a whole.
func (p *hostfileParser) finish() ([]Host, error) {
	if len(p.hosts) == 0 {
		p.line = 0
		return nil, p.fault("no node in it (want a line for each: number, MAC or host name, interface)")
	}
	var faults []error
	slices.SortFunc(p.hosts, func(a, b Host) int { return int(a.Node) - int(b.Node) })
	for i := range p.hosts {
		h := &p.hosts[i]
		p.line = h.NICs[0].Line
		if missing := p.missingBefore(i); missing >= 0 && len(faults) < maxFaults {
			faults = append(faults, p.fault("node %d, but no node %d (want 0 to n-1 without gaps)", h.Node, missing))
		}
		if len(h.NICs) != len(p.hosts[0].NICs) && len(faults) < maxFaults {
			faults = append(faults, p.fault("node %d has %d NICs, node %d has %d (want as many for each)",
				h.Node, len(h.NICs), p.hosts[0].Node, len(p.hosts[0].NICs)))
		}
	}
	if len(faults) > 0 {
		return nil, errors.Join(faults...)
	}
	return p.hosts, nil
}

// missingBefore returns the number before that of host i that no host has; -1 if none is missing.
func (p *hostfileParser) missingBefore(i int) int {
	number, before := int(p.hosts[i].Node), -1
	if i > 0 {
		before = int(p.hosts[i-1].Node)
	}
	if number == before+1 {
		return -1
	}
	return before + 1
}

// validHostName reports whether a text may be a host's name. None ends in a number (RFC 1123 §2.1):
// 10.0.0.300 is an address with a slip.
func validHostName(s string) bool {
	name := strings.TrimSuffix(s, ".")
	if strings.Trim(name[strings.LastIndexByte(name, '.')+1:], "0123456789") == "" {
		return false
	}
	if s == "" || len(s) > 253 || s[0] == '-' || s[0] == '.' {
		return false
	}
	return !strings.ContainsFunc(s, func(c rune) bool {
		return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.ContainsRune("-._", c))
	})
}

// Nodes returns the node table of hosts. ok is false if some addresses are not known; Join finds
// them.
func Nodes(hosts []Host) (table []mcd.Node, ok bool) {
	for _, h := range hosts {
		n := mcd.Node{ID: h.Node}
		for _, nic := range h.NICs {
			if nic.MAC.IsZero() {
				return nil, false
			}
			n.MACs = append(n.MACs, nic.MAC)
		}
		table = append(table, n)
	}
	return table, true
}

// Stations returns where the UDP links of all hosts' nic-th NICs listen, in the order of hosts: for
// udp.Config. Errors: a host of which only a MAC is known.
func Stations(hosts []Host, nic int) ([]udp.Station, error) {
	var all []udp.Station
	for _, h := range hosts {
		if nic < 0 || nic >= len(h.NICs) {
			return nil, fmt.Errorf("node %d has %d NICs, and no number %d", h.Node, len(h.NICs), nic)
		}
		addr := cmp.Or(h.NICs[nic].Addr, h.NICs[nic].HostName)
		if addr == "" {
			return nil, fmt.Errorf("node %d: a MAC alone does not tell where its UDP link listens "+
				"(want an IP address, such as 10.0.0.1 or 10.0.0.1:7401)", h.Node)
		}
		all = append(all, udp.Station{Addr: addr})
	}
	return all, nil
}

// Self returns the one of hosts that is this machine: its first MAC or IP address is an interface's
// here, or its host name is this machine's. The error lists what was compared.
func Self(hosts []Host) (Host, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return Host{}, fmt.Errorf("list the network interfaces: %w", err)
	}
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return Host{}, fmt.Errorf("list the IP addresses: %w", err)
	}
	hostName, err := os.Hostname()
	if err != nil {
		return Host{}, fmt.Errorf("find this machine's host name: %w", err)
	}
	return self(hosts, interfaces, addrs, hostName)
}

func self(hosts []Host, interfaces []net.Interface, addrs []net.Addr, hostName string) (Host, error) {
	var found []Host
	for _, h := range hosts {
		first := h.NICs[0]
		name, ip := first.host()
		mine := name != "" && sameHost(name, hostName)
		for _, i := range interfaces {
			mac, err := transport.MACFrom(i.HardwareAddr)
			mine = mine || err == nil && mac == first.MAC
		}
		for _, a := range addrs {
			n, is := a.(*net.IPNet)
			mine = mine || is && ip.IsValid() && n.IP.Equal(ip.AsSlice())
		}
		if mine {
			found = append(found, h)
		}
	}
	if len(found) == 1 {
		return found[0], nil
	}
	return Host{}, fmt.Errorf("%d nodes of the host file are this machine, %s with the interfaces %s "+
		"(want one, or say which by its number)", len(found), hostName, interfaceNames(interfaces, addrs))
}

// host returns the host name of a NIC, or its IP address.
func (n *HostNIC) host() (name string, ip netip.Addr) {
	if n.Addr == "" {
		return n.HostName, ip
	}
	host, _, err := net.SplitHostPort(n.Addr)
	if err != nil {
		host = strings.Trim(n.Addr, "[]")
	}
	if ip, err = netip.ParseAddr(host); err == nil {
		return "", ip.Unmap().WithZone("")
	}
	return host, ip
}

// sameHost reports whether two names are of one host. Names know no case, and one may be without
// its domain.
func sameHost(a, b string) bool {
	shortA, domainA, _ := strings.Cut(a, ".")
	shortB, domainB, _ := strings.Cut(b, ".")
	return strings.EqualFold(shortA, shortB) &&
		(domainA == "" || domainB == "" || strings.EqualFold(domainA, domainB))
}

func interfaceNames(interfaces []net.Interface, addrs []net.Addr) string {
	var names []string
	for _, i := range interfaces {
		names = append(names, strings.TrimSpace(fmt.Sprintf("%s %v", i.Name, i.HardwareAddr))) // lo has none
	}
	for _, a := range addrs {
		names = append(names, a.String())
	}
	return strings.Join(names, ", ")
}
