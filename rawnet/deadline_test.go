package rawnet_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/rawnet"
)

// Deadlines end waits, also one that is set while a goroutine waits, and one that lies behind; a
// later one lets the connection go on, and nothing is lost.
func TestConn_Deadlines(t *testing.T) {
	bubble(t, options{}, func(t *testing.T, c *cluster) {
		a, b := c.pair(t, "x")
		one := make([]byte, 1)
		begun := time.Now()
		must(t, a.SetReadDeadline(begun.Add(time.Second)))
		_, err := a.Read(one)
		isOp(t, err, "read", os.ErrDeadlineExceeded, "i/o timeout")
		if took := time.Since(begun); took != time.Second {
			t.Errorf("it took %v", took)
		}
		_, err = b.Write([]byte("abc"))
		must(t, err)
		synctest.Wait()
		_, err = a.Read(one)
		isOp(t, err, "read", os.ErrDeadlineExceeded, "") // also with bytes there
		must(t, a.SetReadDeadline(time.Time{}))
		_, err = a.Read(one)
		must(t, err)
		must(t, a.SetReadDeadline(time.Now())) // it has passed
		_, err = a.Read(one)
		isOp(t, err, "read", os.ErrDeadlineExceeded, "")
		must(t, a.SetReadDeadline(time.Time{}))
		waits := make(chan error, 1)
		rest := make([]byte, 2)
		_, err = a.Read(rest)
		must(t, err)
		go func() { _, err := a.Read(one); waits <- err }()
		synctest.Wait()
		must(t, a.SetReadDeadline(time.Now().Add(time.Hour)))
		must(t, a.SetReadDeadline(time.Now().Add(time.Minute)))
		isOp(t, <-waits, "read", os.ErrDeadlineExceeded, "")
		must(t, a.SetReadDeadline(time.Now().Add(time.Second)))
		must(t, a.SetReadDeadline(time.Now().Add(time.Hour))) // the first one means nothing any more
		go func() { _, err := a.Read(one); waits <- err }()
		time.Sleep(time.Minute)
		if len(waits) > 0 {
			t.Fatalf("a deadline that was changed: %v", <-waits)
		}
		must(t, a.SetDeadline(time.Now().Add(-time.Second)))
		isOp(t, <-waits, "read", os.ErrDeadlineExceeded, "")
		_, err = a.Write(one)
		isOp(t, err, "write", os.ErrDeadlineExceeded, "")
		must(t, a.SetDeadline(time.Time{}))

		// A Write that waits for the other end to read, and then for the network.
		must(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		n, err := a.Write(make([]byte, 1<<20))
		isOp(t, err, "write", os.ErrDeadlineExceeded, "")
		must(t, a.SetWriteDeadline(time.Time{}))
		got := make(chan int64, 1)
		go func() { n, _ := io.Copy(io.Discard, b); got <- n }()
		synctest.Wait()
		c.faults[0].Cut(true)
		must(t, a.SetWriteDeadline(time.Now().Add(time.Second)))
		m, err := a.Write(make([]byte, 10<<20))
		isOp(t, err, "write", os.ErrDeadlineExceeded, "")
		c.faults[0].Cut(false)
		must(t, a.SetWriteDeadline(time.Time{}))
		k, err := a.Write(make([]byte, 1<<20))
		must(t, err)
		must(t, a.Close())
		if sum := int64(n + m + k); <-got != sum || m == 0 {
			t.Errorf("%d, %d and %d bytes were written, and others came", n, m, k)
		}
		l, err := c.nets[1].Listen("y")
		must(t, err)
		must(t, l.SetDeadline(time.Now().Add(time.Second)))
		_, err = l.Accept()
		isOp(t, err, "accept", os.ErrDeadlineExceeded, "")
	})
}

// A write deadline that is moved in the instant in which it ends the wait for room loses nothing:
// the Write goes on, or says what it has sent.
func TestWrite_DeadlineMovesAsItPasses(t *testing.T) {
	for _, size := range []int{100, 100_000} { // one record, and a batch
		bubble(t, options{cfg: rawnet.Config{Window: 256 << 10}}, func(t *testing.T, c *cluster) {
			a, b := c.pair(t, "x")
			c.stuff(t)
			data := make([]byte, size)
			for i := range data {
				data[i] = byte(i ^ i>>8)
			}
			written := make(chan int)
			go func() {
				n, err := a.Write(data)
				if err != nil && !errors.Is(err, os.ErrDeadlineExceeded) || err == nil && n != size {
					t.Errorf("%d bytes, %v", n, err)
				}
				written <- n
			}()
			for range 10 {
				synctest.Wait() // it waits for room
				must(t, a.SetWriteDeadline(time.Now()))
				must(t, a.SetWriteDeadline(time.Time{}))
			}
			c.faults[0].Cut(false)
			n := <-written
			must(t, a.Close())
			if got, err := io.ReadAll(b); err != nil || !bytes.Equal(got, data[:n]) {
				t.Errorf("%d bytes of %d came, %v", len(got), n, err)
			}
		})
	}
}
