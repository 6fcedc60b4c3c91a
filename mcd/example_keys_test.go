package mcd_test

import (
	"context"
	"fmt"
	"log"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// A key is changed while nodes talk, in three steps, each on all nodes before the next. With
// mcd.Config.KeyFile the endpoints do it themselves when the file changes.
func ExampleEndpoint_SetKeys() {
	old, next := keyring.Generate(), keyring.Generate()
	nodes, closeAll, err := mcdtest.Start(2, mcdtest.Config{
		Endpoint: mcd.Config{Keys: &keyring.Ring{Keys: []keyring.Key{old}}}})
	if err != nil {
		log.Fatal(err)
	}
	defer closeAll()
	ctx := context.Background()
	from, to := acquire(nodes[0], 1), acquire(nodes[1], 7)
	buf := make([]byte, nodes[1].MaxPayload())
	for _, step := range []struct {
		what string
		keys []keyring.Key
	}{
		{"all open what the new key seals", []keyring.Key{old, next}},
		{"all seal with it", []keyring.Key{next, old}},
		{"the old one is gone", []keyring.Key{next}},
	} {
		for _, e := range nodes {
			if err := e.SetKeys(&keyring.Ring{Keys: step.keys}); err != nil {
				log.Fatal(err)
			}
		}
		if err := from.Send(ctx, to.Addr(), []byte(step.what)); err != nil {
			log.Fatal(err)
		}
		n, _, err := to.Recv(ctx, buf)
		fmt.Printf("%s, %v\n", buf[:n], err)
	}
	// Output:
	// all open what the new key seals, <nil>
	// all seal with it, <nil>
	// the old one is gone, <nil>
}
