package cluster_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"sync"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/fabric"
)

// Three nodes that know nothing but their number, and that there are three.
func ExampleJoin() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	links, err := fabric.Links(3)
	if err != nil {
		log.Fatal(err)
	}
	var nodes sync.WaitGroup
	for k, l := range links {
		ep, err := mcd.Open(mcd.Config{Node: mcd.NodeID(k)}, l)
		if err != nil {
			log.Fatal(err)
		}
		defer ep.Close()
		nodes.Go(func() {
			m, err := cluster.Join(ctx, ep, cluster.Config{Nodes: 3})
			if err != nil {
				log.Fatal(err)
			}
			if ep.Node() == 0 {
				fmt.Println(m.Nodes())
			}
		})
	}
	nodes.Wait()
	// Output: [{0 [02:00:00:00:00:01]} {1 [02:00:00:00:00:02]} {2 [02:00:00:00:00:03]}]
}

func ExampleParseHostfile() {
	hosts, err := cluster.ParseHostfile("hosts", strings.NewReader(`
0  02:00:00:00:00:01  eth0
1  02:00:00:00:00:02  eth0
`))
	if err != nil {
		log.Fatal(err)
	}
	table, complete := cluster.Nodes(hosts)
	fmt.Println(table, complete)

	_, err = cluster.ParseHostfile("hosts", strings.NewReader("0 02:00:00:00:00:01\n0 02:00:00:00:00\n"))
	fmt.Println(err)
	// Output:
	// [{0 [02:00:00:00:00:01]} {1 [02:00:00:00:00:02]}] true
	// hosts:2: "02:00:00:00:00" is neither a MAC (want 02:00:00:00:00:01) nor a host name
}
