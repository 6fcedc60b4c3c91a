package offload_test

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rawlane/rawlane/barrier/offload"
	"github.com/rawlane/rawlane/internal/testbed"
	"github.com/rawlane/rawlane/transport"
)

// A process that runs out of descriptors is told so, however many it lacks, keeps none, and opens a
// unit once it has them: package ebpf takes the lack of them for one of features, and remembers it.
func TestOpen_WithoutDescriptors(t *testing.T) {
	if !testbed.Alone(t, needUnits) { // in a process that has not opened a unit before
		return
	}
	bed := testbed.ForTest(t, testbed.Config{})
	open := func() error {
		u, err := offload.Open(testbed.Interface(0))
		if err == nil {
			err = u.Close()
		}
		return err
	}
	var old unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NOFILE, &old); err != nil {
		t.Fatal(err)
	}
	limited := func(n uint64) error {
		return bed.Node(0).Do(func() error {
			err := unix.Setrlimit(unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: n, Max: old.Max})
			return errors.Join(err, open(), unix.Setrlimit(unix.RLIMIT_NOFILE, &old))
		})
	}
	before := testbed.Descriptors(t)
	for limit := uint64(1); ; limit++ {
		err := limited(limit)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EMFILE) || errors.Is(err, transport.ErrNoInterface) {
			t.Fatalf("with %d descriptors: %v, want EMFILE alone", limit, err)
		}
		if after := testbed.Descriptors(t); after != before {
			t.Fatalf("%d descriptors before, %d after: %v", before, after, err)
		}
	}
}
