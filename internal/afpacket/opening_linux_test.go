package afpacket_test

import (
	"errors"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

func TestNoSuchInterface(t *testing.T) {
	for _, d := range kinds {
		_, err := d.open("nonexistent", settings{})
		if !errors.Is(err, transport.ErrNoInterface) || !strings.Contains(err.Error(), d.name+" nonexistent: open: no such interface (there are: ") {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

func TestInterfaceIsDown(t *testing.T) {
	for _, d := range kinds {
		bed := newBed(t)
		if err := bed.Node(0).SetUp(0, false); err != nil {
			t.Fatal(err)
		}
		err := bed.Node(0).Do(func() error { _, err := d.open("eth0", settings{}); return err })
		if !errors.Is(err, transport.ErrInterfaceDown) || !strings.Contains(err.Error(), "ip link set eth0 up") {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// Without CAP_NET_RAW the error names it and the ways to get it.
func TestNoPrivilege(t *testing.T) {
	for _, d := range kinds {
		d.need(t)
		bed := newBed(t)
		err := bed.Node(0).Do(func() error { // the thread is the node's, and ends with it
			head := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
			var none [2]unix.CapUserData
			if err := unix.Capset(&head, &none[0]); err != nil {
				return err
			}
			_, err := d.open("eth0", settings{})
			return err
		})
		if !errors.Is(err, transport.ErrPermission) || !strings.Contains(err.Error(), "needs CAP_NET_RAW") || !strings.Contains(err.Error(), "setcap") {
			t.Errorf("%s: %v", d.name, err)
		}
	}
}

// No descriptor stays open, whichever step of opening fails: here, each that gets no descriptor.
func TestNoDescriptorLeaks(t *testing.T) {
	for _, d := range kinds {
		t.Run(d.name, func(t *testing.T) {
			d.need(t)
			bed := newBed(t)
			open := func(s settings) error {
				return bed.Node(0).Do(func() error {
					l, err := d.open("eth0", s)
					if err != nil {
						return err
					}
					return l.Close()
				})
			}
			if err := open(settings{}); err != nil { // the runtime's poller opens what it needs
				t.Fatal(err)
			}
			before := testbed.Descriptors(t)
			for range 20 {
				if err := open(settings{promiscuous: true}); err != nil {
					t.Fatal(err)
				}
			}
			if after := testbed.Descriptors(t); after != before {
				t.Errorf("%d descriptors before 20 links, %d after", before, after)
			}
			failures := make(map[string]bool)
			for limit := uint64(1); ; limit++ {
				restore := limitDescriptors(t, limit)
				err := open(settings{})
				restore()
				if err == nil {
					break
				}
				if !errors.Is(err, unix.EMFILE) || errors.Is(err, transport.ErrNoInterface) {
					t.Fatalf("with %d descriptors: %v; want EMFILE", limit, err)
				}
				failures[err.Error()] = true
				if after := testbed.Descriptors(t); after != before {
					t.Fatalf("%d descriptors before, %d after: %v", before, after, err)
				}
			}
			if len(failures) < 2 { // before the receiving socket is open, and after
				t.Errorf("opening failed in these ways only: %v", failures)
			}
		})
	}
}

// limitDescriptors leaves numbers below n for new descriptors of this process, until restore is
// called.
func limitDescriptors(t *testing.T, n uint64) (restore func()) {
	t.Helper()
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	set := func(l unix.Rlimit) {
		if err := unix.Setrlimit(unix.RLIMIT_NOFILE, &l); err != nil {
			t.Fatal(err)
		}
	}
	set(unix.Rlimit{Cur: n, Max: old.Max})
	return func() { set(old) }
}
