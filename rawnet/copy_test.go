package rawnet_test

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo"
)

// failing is a writer that takes some bytes.
type failing struct{ takes int }

var errFull = errors.New("no space left")

func (w *failing) Write(b []byte) (int, error) {
	if len(b) > w.takes {
		return w.takes, errFull
	}
	w.takes -= len(b)
	return len(b), nil
}

// io.Copy to and from a connection ends with what ends it, and says how much went: EOF, the error of
// the other side, or that of the connection.
func TestConn_Copies(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		data := strings.Repeat("data", 100_000)
		var got bytes.Buffer
		read := make(chan error)
		go func() {
			n, err := b.WriteTo(&got)
			if n != int64(2*len(data)) {
				t.Errorf("%d bytes were copied", n)
			}
			read <- err
		}()
		errLost := errors.New("the disk is lost")
		if n, err := a.ReadFrom(strings.NewReader(data)); n != int64(len(data)) || err != nil {
			t.Errorf("%d, %v", n, err)
		}
		broken := io.MultiReader(strings.NewReader(data), iotest.ErrReader(errLost))
		if n, err := a.ReadFrom(broken); n != int64(len(data)) || !errors.Is(err, errLost) {
			t.Errorf("%d, %v", n, err)
		}
		must(t, a.CloseWrite())
		must(t, <-read)
		if got.String() != data+data {
			t.Errorf("%d bytes came", got.Len())
		}
		if n, err := a.ReadFrom(strings.NewReader(data)); n != 0 || !errors.Is(err, syscall.EPIPE) {
			t.Errorf("behind CloseWrite: %d, %v", n, err)
		}

		a, b = c.pair(t, "full")
		_, err := a.Write([]byte("0123456789"))
		must(t, err)
		synctest.Wait()
		if n, err := b.WriteTo(&failing{takes: 4}); n != 4 || !errors.Is(err, errFull) {
			t.Errorf("%d, %v", n, err)
		}
		c.faults[1].Cut(true)
		if n, err := b.WriteTo(io.Discard); n != 0 || !errors.Is(err, memfifo.ErrPeerDown) {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// enough is a writer that has enough with each Write.
type enough struct{}

func (enough) Write(b []byte) (int, error) { return len(b), errFull }

// ReadFrom and WriteTo allocate nothing: their memory is used again.
func TestConn_CopiesDoNotAllocate(t *testing.T) {
	c := open(t, options{spin: 100 * time.Microsecond, bare: true})
	a, b := c.pair(t, "x")
	data, source := make([]byte, 64), bytes.NewReader(nil)
	var to io.Writer = enough{}
	once := func() {
		source.Reset(data)
		_, err := a.ReadFrom(source)
		must(t, err)
		if n, err := b.WriteTo(to); n != 64 || !errors.Is(err, errFull) {
			t.Errorf("%d, %v", n, err)
		}
	}
	for range 100 {
		once()
	}
	if n := testing.AllocsPerRun(100, once); n != 0 {
		t.Errorf("%v allocations, want 0", n)
	}
}

// short is a writer that takes one byte of what it gets, and says no more.
type short struct{}

func (short) Write([]byte) (int, error) { return 1, nil }

// A copy to a writer that takes less than it gets, and gives no error, ends as io.Copy does.
func TestConn_CopyToAShortWriter(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		_, err := a.Write([]byte("data"))
		must(t, err)
		must(t, a.Close())
		if n, err := io.Copy(short{}, b); n != 1 || !errors.Is(err, io.ErrShortWrite) {
			t.Errorf("%d bytes, %v; want 1, %v", n, err, io.ErrShortWrite)
		}
	})
}
