package cluster_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
)

// Where one of two networks is gone at one node, as its interface was removed, nodes exchange,
// gather, ask and close by the other one.
func TestExchanger_ByTheNetworkThatIsLeft(t *testing.T) {
	for gone := range 2 {
		synctest.Test(t, func(t *testing.T) {
			var link transport.Link // of node 1, which is gone
			es := mcdtest.Open(t, 3, mcdtest.Config{
				NICs: 2, Endpoint: mcd.Config{Spin: -1},
				Wrap: func(n mcd.NodeID, nic int, l transport.Link) transport.Link {
					if n == 1 && nic == gone {
						link = l
					}
					return l
				},
			})
			var all []*cluster.Exchanger
			for _, e := range es {
				x, err := cluster.OpenExchanger(e, cluster.ExchangerConfig{
					Answer: func(_ mcd.NodeID, request []byte) ([]byte, bool) { return request, true },
				})
				if err != nil {
					t.Fatal(err)
				}
				all = append(all, x)
			}
			if err := link.Close(); err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			each(t, all, func(i int, x *cluster.Exchanger) error {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				got, err := x.Exchange(ctx, []byte{byte(i)})
				if err == nil && (len(got) != 3 || got[1][0] != 1) {
					err = fmt.Errorf("exchanged %v", got)
				}
				answer, asking := x.Ask(ctx, mcd.NodeID((i+1)%3), []byte("asked"))
				if asking == nil && string(answer) != "asked" {
					asking = fmt.Errorf("the answer is %q", answer)
				}
				_, gathering := x.Gather(ctx, 1, []byte{byte(i)})
				return errors.Join(err, asking, gathering, x.Close())
			})
			if took := time.Since(start); took > time.Second {
				t.Errorf("without network %d it took %v", gone, took)
			}
		})
	}
}
