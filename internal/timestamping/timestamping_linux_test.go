package timestamping

import (
	"errors"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/transport"
)

// loopback opens a UDP socket that is connected to itself.
func loopback(t *testing.T, family int) int {
	t.Helper()
	fd, err := unix.Socket(family, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		t.Skip(err) // no such family here
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	var at unix.Sockaddr = &unix.SockaddrInet4{Addr: [4]byte{127, 0, 0, 1}}
	if family == unix.AF_INET6 {
		at = &unix.SockaddrInet6{Addr: [16]byte{15: 1}}
	}
	if err := unix.Bind(fd, at); err != nil {
		t.Skip(err) // the loopback is down, or has no such address
	}
	if at, err = unix.Getsockname(fd); err == nil {
		err = unix.Connect(fd, at)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// receive waits for a datagram, and returns its stamp and the time when it was there.
func receive(t *testing.T, fd int) (stamp transport.Stamp, at time.Time) {
	t.Helper()
	control := make([]byte, 2*Space)
	for begun := time.Now(); time.Since(begun) < 20*time.Second; {
		_, n, _, _, err := unix.Recvmsg(fd, make([]byte, 16), control, 0)
		if errors.Is(err, unix.EAGAIN) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		return Received(control[:n]), time.Now()
	}
	t.Fatal("no datagram")
	return stamp, at
}

// Datagrams are stamped between the call that sends them and the one that receives them, and are
// numbered from 0 each time that stamps are switched on.
func TestSet(t *testing.T) {
	for name, family := range map[string]int{"IPv4": unix.AF_INET, "IPv6": unix.AF_INET6} {
		t.Run(name, func(t *testing.T) {
			fd := loopback(t, family)
			var q Queue
			stamps := make([]transport.SentStamp, 8)
			send := func() time.Time {
				begun := time.Now()
				if _, err := unix.Write(fd, []byte("x")); err != nil {
					t.Fatal(err)
				}
				return begun
			}
			for turn := range 2 {
				if err := Set(fd, true); err != nil {
					t.Fatal(err)
				}
				const wanted = 1<<0 | 1<<1 | 1<<2 | 1<<3 | 1<<4 | 1<<6 | // the driver's and the NIC's, of both ways
					1<<7 | 1<<11 | 1<<14 // with numbers, without the frames, both of one frame
				if flags, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW); err != nil || flags != wanted {
					t.Fatalf("flags %#x, %v; want %#x", flags, err, wanted)
				}
				for number := uint32(0); ; number++ {
					begun := send()
					received, ended := receive(t, fd)
					if n := q.Sent(fd, stamps); n != 1 || stamps[0].Frame != number || !stamps[0].Hardware.IsZero() ||
						stamps[0].Software.Before(begun) || stamps[0].Software.After(ended) {
						t.Fatalf("turn %d, datagram %d: %d stamps, %v; between %v and %v", turn, number, n, stamps[0], begun, ended)
					}
					if received.Software.IsZero() && number < 1_000_000 {
						continue // the kernel begins some time later
					}
					if at := received.Software; at.Before(begun) || at.After(ended) || !received.Hardware.IsZero() {
						t.Errorf("received at %v, want between %v and %v", received, begun, ended)
					}
					if number > 0 {
						break // and counts
					}
				}
			}
			for range 3 {
				send()
				receive(t, fd)
			}
			if n := q.Sent(fd, stamps[:2]); n != 2 || stamps[1].Frame != stamps[0].Frame+1 {
				t.Errorf("%d of three stamps, with room for two: %v", n, stamps[:2])
			}
			if n := q.Sent(fd, stamps); n != 1 {
				t.Errorf("then %d, want the third", n)
			}
			if err := Set(fd, false); err != nil {
				t.Fatal(err)
			}
			send()
			if received, _ := receive(t, fd); received != (transport.Stamp{}) || q.Sent(fd, stamps) != 0 {
				t.Errorf("switched off, and stamped: %v", received)
			}
		})
	}
}

// What is no socket cannot stamp, and says so.
func TestSet_Faults(t *testing.T) {
	for _, on := range []bool{true, false} {
		if err := Set(-1, on); !errors.Is(err, unix.EBADF) {
			t.Errorf("%v: %v, want EBADF", on, err)
		}
	}
	for _, errno := range []unix.Errno{unix.ENOPROTOOPT, unix.EINVAL} {
		if err := explain(errno); !errors.Is(err, transport.ErrNotSupported) {
			t.Errorf("%v: %v, want %v", errno, err, transport.ErrNotSupported)
		}
	}
	if err := explain(nil); err != nil {
		t.Error(err)
	}
}

// message appends a control message.
func message(b []byte, level, kind int32, data []byte) []byte {
	h := unix.Cmsghdr{Level: level, Type: kind}
	h.SetLen(unix.CmsgLen(len(data)))
	at := len(b)
	b = append(b, make([]byte, unix.CmsgSpace(len(data)))...)
	copy(b[at:], (*[unix.SizeofCmsghdr]byte)(unsafe.Pointer(&h))[:])
	copy(b[at+unix.CmsgLen(0):], data)
	return b
}

// times is a stamp as the kernel writes it.
func times(all stamps) []byte {
	return append([]byte(nil), (*[unsafe.Sizeof(stamps{})]byte)(unsafe.Pointer(&all))[:]...)
}

// extended is why something is in an error queue.
func extended(e unix.SockExtendedErr) []byte {
	return append([]byte(nil), (*[unsafe.Sizeof(e)]byte)(unsafe.Pointer(&e))[:]...)
}

// The driver's time and the NIC's are told apart, behind other messages and before them.
func TestReceived(t *testing.T) {
	software, hardware := stamps{0: {1, 2}}, stamps{2: {3, 4}}
	other := message(nil, unix.SOL_UDP, unix.UDP_GRO, []byte{1, 2, 3, 4})
	short := message(nil, unix.SOL_UDP, unix.UDP_GRO, []byte{1})
	for name, c := range map[string]struct {
		control []byte
		want    transport.Stamp
	}{
		"behind an empty one": {message(message(nil, unix.SOL_UDP, unix.UDP_GRO, nil), unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(software)), transport.Stamp{Software: time.Unix(1, 2)}},
		"behind a short one":  {message(short, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(software)), transport.Stamp{Software: time.Unix(1, 2)}},
		"the driver's":        {message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(software)), transport.Stamp{Software: time.Unix(1, 2)}},
		"the NIC's":           {message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(hardware)), transport.Stamp{Hardware: time.Unix(3, 4)}},
		"nanoseconds":         {message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(stamps{0: {0, 7}, 2: {0, 8}})), transport.Stamp{Software: time.Unix(0, 7), Hardware: time.Unix(0, 8)}},
		"seconds":             {message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(stamps{0: {7, 0}, 2: {8, 0}})), transport.Stamp{Software: time.Unix(7, 0), Hardware: time.Unix(8, 0)}},
		"behind another":      {message(other, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(software)), transport.Stamp{Software: time.Unix(1, 2)}},
		"before another":      {append(message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(software)), other...), transport.Stamp{Software: time.Unix(1, 2)}},
		"another level":       {message(nil, unix.SOL_UDP, unix.SO_TIMESTAMPING_NEW, times(software)), transport.Stamp{}},
		"another type":        {message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING, times(software)), transport.Stamp{}},
		"cut off":             {message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(software)[:47]), transport.Stamp{}},
		"nothing":             {nil, transport.Stamp{}},
		"less than a head":    {make([]byte, unix.CmsgLen(0)-1), transport.Stamp{}},
		"a head of zeros":     {make([]byte, 64), transport.Stamp{}},
	} {
		if got := Received(c.control); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	long := message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(software))
	for n := range long {
		_ = Received(long[:n:n]) // whatever is missing, it ends
	}
}

// A stamp of the error queue needs its time, its number, and to be one of sending.
func TestSent(t *testing.T) {
	good := unix.SockExtendedErr{Errno: uint32(unix.ENOMSG), Origin: unix.SO_EE_ORIGIN_TIMESTAMPING, Info: unix.SCM_TSTAMP_SND, Data: 77}
	at := message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(stamps{0: {1, 2}}))
	for _, kind := range [][2]int32{
		{unix.SOL_PACKET, unix.PACKET_TX_TIMESTAMP}, {unix.SOL_IP, unix.IP_RECVERR}, {unix.SOL_IPV6, unix.IPV6_RECVERR},
	} {
		control := message(append([]byte(nil), at...), kind[0], kind[1], extended(good))
		if s, ok := sent(control); !ok || s.Frame != 77 || s.Software != time.Unix(1, 2) {
			t.Errorf("%v: %v %v", kind, s, ok)
		}
	}
	scheduled, icmp := good, good
	scheduled.Info, icmp.Origin = unix.SCM_TSTAMP_SND+1, unix.SO_EE_ORIGIN_ICMP
	for name, control := range map[string][]byte{
		"without a time": message(nil, unix.SOL_IP, unix.IP_RECVERR, extended(good)),
		"a time of zero": message(message(nil, unix.SOL_SOCKET, unix.SO_TIMESTAMPING_NEW, times(stamps{})), unix.SOL_IP, unix.IP_RECVERR, extended(good)),
		"a time alone":   at,
		"scheduled":      message(append([]byte(nil), at...), unix.SOL_IP, unix.IP_RECVERR, extended(scheduled)),
		"of ICMP":        message(append([]byte(nil), at...), unix.SOL_IP, unix.IP_RECVERR, extended(icmp)),
		"another type":   message(append([]byte(nil), at...), unix.SOL_IP, unix.IP_RECVERR+1, extended(good)),
		"another level":  message(append([]byte(nil), at...), unix.SOL_UDP, unix.IP_RECVERR, extended(good)),
		"cut off":        message(append([]byte(nil), at...), unix.SOL_IP, unix.IP_RECVERR, extended(good)[:15]),
	} {
		if s, ok := sent(control); ok {
			t.Errorf("%s: taken as %v", name, s)
		}
	}
}

// A NIC that does not stamp is left as it is.
func TestAsk(t *testing.T) {
	fd := loopback(t, unix.AF_INET)
	n := ask(system, fd, 1)
	if n.before != nil {
		t.Errorf("the loopback was changed: %+v", n.before)
	}
	n.Restore(fd)
	var none *NIC
	none.Restore(fd)
	if name, err := interfaceName(fd, 1); name != "lo" || err != nil {
		t.Errorf("the loopback's name is %q, %v", name, err)
	}
}

// nic is one whose driver a test makes.
type nic struct {
	renamed      bool   // eth7 has another name by now
	stamps       uint32 // what its hardware does
	has          unix.HwTstampConfig
	mute, denied error // it does not tell what it has; it may not be set
	noTX         bool  // it stamps no frames that are sent
	ptpAlone     bool  // nor others than those of PTP that are received
	clears       bool  // a refused setting has the old one off,
	sets         int
}

func (n *nic) calls() calls {
	present := func() string {
		if n.renamed {
			return "lan0"
		}
		return "eth7"
	}
	return calls{
		name: func(_, index int) (string, error) {
			if index != 7 {
				return "", unix.ENODEV
			}
			return present(), nil
		},
		info: func(int, string) (*unix.EthtoolTsInfo, error) {
			info := &unix.EthtoolTsInfo{So_timestamping: n.stamps, Tx_types: 1 << unix.HWTSTAMP_TX_OFF,
				Rx_filters: 1<<unix.HWTSTAMP_FILTER_NONE | 1<<unix.HWTSTAMP_FILTER_PTP_V2_L4_EVENT}
			if !n.noTX {
				info.Tx_types |= 1 << unix.HWTSTAMP_TX_ON
			}
			if !n.ptpAlone {
				info.Rx_filters |= 1 << unix.HWTSTAMP_FILTER_ALL
			}
			return info, nil
		},
		get: func(int, string) (*unix.HwTstampConfig, error) {
			has := n.has
			return &has, n.mute
		},
		set: func(_ int, name string, cfg *unix.HwTstampConfig) error {
			n.sets++
			switch {
			case n.clears && cfg.Rx_filter == unix.HWTSTAMP_FILTER_ALL:
				n.has = unix.HwTstampConfig{}
				return unix.ERANGE
			case n.denied == nil && name == present():
				n.has = *cfg
			}
			return n.denied
		},
	}
}

// A NIC that stamps both ways is asked for all frames, and has its setting back afterwards.
func TestAsk_Hardware(t *testing.T) {
	const sends, receives = unix.SOF_TIMESTAMPING_TX_HARDWARE, unix.SOF_TIMESTAMPING_RX_HARDWARE
	ptp := unix.HwTstampConfig{Tx_type: unix.HWTSTAMP_TX_ON, Rx_filter: unix.HWTSTAMP_FILTER_PTP_V2_L4_EVENT}
	all := unix.HwTstampConfig{Tx_type: unix.HWTSTAMP_TX_ON, Rx_filter: unix.HWTSTAMP_FILTER_ALL}
	for name, c := range map[string]struct {
		nic             nic
		asked, restored unix.HwTstampConfig
	}{
		"both ways":         {nic{stamps: sends | receives | 1<<4, has: ptp}, all, ptp},
		"does not tell":     {nic{stamps: sends | receives, has: ptp, mute: unix.EOPNOTSUPP}, ptp, ptp},
		"refuses, and ends": {nic{stamps: sends | receives, has: ptp, clears: true}, ptp, ptp},
		"not sent frames":   {nic{stamps: sends | receives, has: ptp, noTX: true}, ptp, ptp},
		"frames of PTP":     {nic{stamps: sends | receives, has: ptp, ptpAlone: true}, ptp, ptp},
		"may not be set":    {nic{stamps: sends | receives, has: ptp, denied: unix.EPERM}, ptp, ptp},
		"sent frames alone": {nic{stamps: sends, has: ptp}, ptp, ptp},
		"received alone":    {nic{stamps: receives, has: ptp}, ptp, ptp},
		"software alone":    {nic{stamps: unix.SOF_TIMESTAMPING_TX_SOFTWARE, has: ptp}, ptp, ptp},
	} {
		n := ask(c.nic.calls(), 3, 7)
		if c.nic.has != c.asked {
			t.Errorf("%s: asked for %+v, want %+v", name, c.nic.has, c.asked)
		}
		if c.nic.sets > 0 && (c.nic.noTX || c.nic.ptpAlone || c.nic.mute != nil) {
			t.Errorf("%s: set %d times", name, c.nic.sets)
		}
		n.Restore(3)
		if c.nic.has != c.restored {
			t.Errorf("%s: left with %+v, want %+v", name, c.nic.has, c.restored)
		}
		c.nic.has = all // somebody else's
		n.Restore(3)
		if c.nic.has != all {
			t.Errorf("%s: restored twice", name)
		}
	}
	shared := nic{stamps: sends | receives}
	n := ask(shared.calls(), 3, 7)
	shared.has = ptp // by another program
	if n.Restore(3); shared.has != ptp {
		t.Errorf("what another program has set meanwhile is %+v", shared.has)
	}
	gone := (&nic{stamps: sends | receives}).calls()
	if n := ask(gone, 3, 8); n.before != nil {
		t.Error("an interface that is gone was changed")
	}
	broken := gone
	broken.info = func(int, string) (*unix.EthtoolTsInfo, error) { return nil, unix.EOPNOTSUPP }
	if n := ask(broken, 3, 7); n.before != nil {
		t.Error("a driver that knows nothing of stamps was changed")
	}
}

// However stamps end, the NIC has its setting back: by a switch, by an error of the sockets, by
// Close, after which nothing switches them on.
func TestSwitch(t *testing.T) {
	const both = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE
	all := unix.HwTstampConfig{Tx_type: unix.HWTSTAMP_TX_ON, Rx_filter: unix.HWTSTAMP_FILTER_ALL}
	failed := errors.New("no stamps today")
	var n *nic
	var s *Switch
	var fault error
	on := false
	turn := func(to bool) error {
		return s.Turn(3, 7, to, func(to bool) error {
			if to && fault != nil {
				on = true // one of two sockets
				return fault
			}
			on = to
			return nil
		})
	}
	start := func() {
		n, s, fault, on = &nic{stamps: both}, &Switch{}, nil, false
		c := n.calls()
		s.calls = &c
		if err := turn(true); err != nil || !on || n.has != all {
			t.Fatalf("%v, %v, %+v", err, on, n.has)
		}
	}
	for name, end := range map[string]func(){
		"switched off": func() {
			if err := turn(false); err != nil || on {
				t.Errorf("%v, %v", err, on)
			}
		},
		"an error": func() {
			fault = failed
			if err := turn(true); !errors.Is(err, failed) || on {
				t.Errorf("%v, %v", err, on)
			}
		},
		"closed": func() { s.Close(3) },
		"closed, with another name": func() {
			n.renamed = true
			s.Close(3)
		},
		"closed, and switched on": func() {
			s.Close(3)
			on = false
			if err := turn(true); !errors.Is(err, transport.ErrClosed) || on {
				t.Errorf("%v, %v", err, on)
			}
		},
		"on again, and closed": func() {
			if err := turn(true); err != nil || n.has != all {
				t.Errorf("%v, %+v", err, n.has)
			}
			s.Close(3)
		},
	} {
		start()
		end()
		if n.has != (unix.HwTstampConfig{}) {
			t.Errorf("%s: the NIC has %+v", name, n.has)
		}
	}
	var system Switch
	if err := system.Turn(3, 0, true, func(bool) error { return nil }); err != nil || system.nic != nil {
		t.Errorf("without a NIC: %v, %v", err, system.nic)
	}
}

// Two links that stamp by one NIC leave it as it was before the first one, in whatever order they
// end.
func TestSwitch_OfOneNIC(t *testing.T) {
	const both = unix.SOF_TIMESTAMPING_TX_HARDWARE | unix.SOF_TIMESTAMPING_RX_HARDWARE
	for name, order := range map[string][2]int{"the first one ends first": {0, 1}, "the last one ends first": {1, 0}} {
		n := &nic{stamps: both}
		c := n.calls()
		switches := [2]Switch{{calls: &c}, {calls: &c}}
		for i := range switches {
			if err := switches[i].Turn(3, 7, true, func(bool) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		for _, i := range order {
			switches[i].Close(3)
		}
		if n.has != (unix.HwTstampConfig{}) {
			t.Errorf("%s: the NIC has %+v", name, n.has)
		}
	}
}
