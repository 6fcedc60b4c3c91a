//go:build linux

package grant_test

import (
	"context"
	"log"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport/grant"
	"github.com/rawlane/rawlane/transport/ring"
)

// A program without CAP_NET_RAW opens a link for cluster 7 alone. (ring.Open asks the service by
// itself, for all clusters that the rules give to the user.)
func Example() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	cluster := uint32(7)
	g, err := grant.Open(ctx, grant.Socket(), grant.Request{Interface: "eth0", Ring: true, Cluster: &cluster})
	if err != nil {
		log.Fatal(err) // names the line that the file of rules lacks, or the group to join
	}
	link, err := ring.Open("", ring.Config{Grant: g})
	if err != nil {
		log.Fatal(err)
	}
	node, err := mcd.Open(mcd.Config{Cluster: mcd.ClusterID(cluster), Node: 1}, link)
	if err != nil {
		log.Fatal(err)
	}
	defer node.Close()                               // and with it the link and the grant
	port, err := node.OpenPort(9, mcd.PortOptions{}) // the service has the lock
	if err != nil {
		log.Fatal(err)
	}
	log.Print(port.Addr())
}
