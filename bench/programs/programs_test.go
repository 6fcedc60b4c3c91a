package programs

import (
	"net"
	"testing"
)

// Each program answers its client, and a client of another program is told so.
func TestPrograms(t *testing.T) {
	for name, p := range Programs {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			stop := p.Serve(l)
			defer stop()
			for _, size := range []int{0, 64, 100_000} {
				call, closeAll, err := p.Client(new(net.Dialer).DialContext, l.Addr().String(), size)
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					if err := call(t.Context()); err != nil {
						t.Errorf("%d bytes: %v", size, err)
					}
				}
				closeAll()
			}
			stop()
			call, closeAll, err := p.Client(new(net.Dialer).DialContext, l.Addr().String(), 1)
			if err == nil {
				err = call(t.Context())
				closeAll()
			}
			if err == nil {
				t.Error("a server that was stopped has answered")
			}
		})
	}
}
