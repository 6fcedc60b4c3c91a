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
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
	"github.com/rawlane/rawlane/transport/udp"
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
	file, err := cluster.ParseHostfile("/etc/rawlane/hosts", strings.NewReader(`
0  02:00:00:00:00:01  eth0
1  02:00:00:00:00:02  eth0
key-file  key
`))
	if err != nil {
		log.Fatal(err)
	}
	table, complete := cluster.Nodes(file.Hosts)
	fmt.Println(table, complete, file.KeyFile)

	_, err = cluster.ParseHostfile("hosts", strings.NewReader("0 02:00:00:00:00:01\n0 02:00:00:00:00\n"))
	fmt.Println(err)
	// Output:
	// [{0 [02:00:00:00:00:01]} {1 [02:00:00:00:00:02]}] true /etc/rawlane/key
	// hosts:2: "02:00:00:00:00" is neither a MAC (want 02:00:00:00:00:01) nor a host name, nor an address (want 10.0.0.1:7401)
}

// Nodes of a network that has IP and no more: each knows where one of them listens, its own number,
// and how many there are.
func ExampleJoin_udp() {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	first, err := udp.Open("127.0.0.1:0", udp.Config{MAC: transport.MAC{2, 0, 0, 0, 0, 1}})
	if err != nil {
		log.Fatal(err)
	}
	links := []*udp.Link{first}
	for range 2 {
		l, err := udp.Open("127.0.0.1:0", udp.Config{Seeds: []string{first.Addr().String()}})
		if err != nil {
			log.Fatal(err)
		}
		links = append(links, l)
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
				fmt.Println(len(m.Nodes()), "nodes")
			}
		})
	}
	nodes.Wait()
	// Output: 3 nodes
}

// A host file of addresses says where the links of all nodes listen.
func ExampleStations() {
	file, err := cluster.ParseHostfile("hosts", strings.NewReader("0 10.0.0.1\n1 10.0.0.2:7401\n2 node2:7401\n"))
	if err != nil {
		log.Fatal(err)
	}
	stations, err := cluster.Stations(file.Hosts, 0)
	if err != nil {
		log.Fatal(err)
	}
	// link, err := udp.Open(stations[node].Addr, udp.Config{Stations: stations})
	for _, s := range stations {
		fmt.Println(s.Addr)
	}
	// Output:
	// 10.0.0.1
	// 10.0.0.2:7401
	// node2:7401
}
