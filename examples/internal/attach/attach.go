// Package attach gives the examples their nodes: all of them in this process, on a fabric; or,
// started by "rawlane run -n N", one of N, on a network interface or in shared memory.
package attach

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/packet"
	"github.com/rawlane/rawlane/transport/ring"
	"github.com/rawlane/rawlane/transport/shm"
	"github.com/rawlane/rawlane/transport/udp"
	"github.com/rawlane/rawlane/transport/xdp"
)

// Just is Main of an example that is for n nodes, no more and no fewer.
func Just(n int, limit time.Duration, f func(context.Context, *mcd.Endpoint) error) {
	if size := os.Getenv(envNodes); size != "" && size != strconv.Itoa(n) {
		log.Fatalf("this example is for %d nodes, not %s (rawlane run -n %d %s)", n, size, n, os.Args[0])
	}
	Main(n, limit, f)
}

// What "rawlane run" tells.
const (
	envNode       = "RAWLANE_NODE"
	envNodes      = "RAWLANE_NODES"
	envInterfaces = "RAWLANE_INTERFACES"
	envHostfile   = "RAWLANE_HOSTFILE"
	envKeyFile    = "RAWLANE_KEY_FILE"
	envLink       = "RAWLANE_LINK"
	envListen     = "RAWLANE_LISTEN"
	envSeeds      = "RAWLANE_SEEDS"
	envSegment    = "RAWLANE_SEGMENT"
)

// keyFile returns the cluster's key file: the one that the environment names, else the one of the
// host file, if there is one.
func keyFile() (string, error) {
	if file := os.Getenv(envKeyFile); file != "" {
		return file, nil
	}
	if hostfile := os.Getenv(envHostfile); hostfile != "" {
		file, err := cluster.ReadHostfile(hostfile)
		if err != nil {
			return "", err
		}
		return file.KeyFile, nil
	}
	return "", nil
}

// Main is an example's main function: it runs f for each of n nodes, or for the one that it was
// started as, and ends the program with status 1 if one fails or time is up.
func Main(n int, limit time.Duration, f func(context.Context, *mcd.Endpoint) error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	nodes, closeAll, err := open(ctx, n)
	if err == nil {
		err = errors.Join(Each(nodes, func(e *mcd.Endpoint) error { return f(ctx, e) }), closeAll())
	}
	if err != nil {
		log.Fatal(err)
	}
}

// open returns n endpoints in this process; or one, that has met the others.
func open(ctx context.Context, n int) (nodes []*mcd.Endpoint, closeAll func() error, err error) {
	keys, err := keyFile()
	if err != nil {
		return nil, nil, err
	}
	if os.Getenv(envNode) == "" {
		return mcdtest.Start(n, mcdtest.Config{Endpoint: mcd.Config{KeyFile: keys}})
	}
	node, err1 := strconv.Atoi(os.Getenv(envNode))
	size, err2 := strconv.Atoi(os.Getenv(envNodes))
	if err := errors.Join(err1, err2); err != nil {
		return nil, nil, fmt.Errorf("%s, %s: %w", envNode, envNodes, err)
	}
	link, err := openNearest()
	if err != nil {
		return nil, nil, err
	}
	e, err := mcd.Open(mcd.Config{Node: mcd.NodeID(node), KeyFile: keys}, link)
	if err != nil {
		return nil, nil, errors.Join(err, link.Close())
	}
	m, err := cluster.Join(ctx, e, cluster.Config{Nodes: size})
	if err != nil {
		return nil, nil, errors.Join(err, e.Close())
	}
	return []*mcd.Endpoint{e}, func() error { return errors.Join(m.Close(), e.Close()) }, nil
}

// openNearest opens the link that the environment asks for, and if it names a segment reaches the
// nodes of this host through shared memory.
func openNearest() (transport.Link, error) {
	link, err := openLink()
	segment := os.Getenv(envSegment)
	if err != nil || segment == "" || os.Getenv(envLink) == "shm" {
		return link, err
	}
	nearest, err := shm.Open(segment, shm.Config{Wire: link})
	if err != nil {
		return nil, errors.Join(err, link.Close())
	}
	return nearest, nil
}

// openLink opens the link that the environment asks for; where it does not say, a ring, or a UDP
// link if raw sockets are refused.
func openLink() (transport.Link, error) {
	ifname, _, _ := strings.Cut(os.Getenv(envInterfaces), ",")
	listen, kind := os.Getenv(envListen), os.Getenv(envLink)
	switch {
	case kind == "shm":
		return shm.Open(os.Getenv(envSegment), shm.Config{})
	case kind == "udp" && listen != "":
		return udp.Open(listen, udp.Config{Seeds: strings.Split(os.Getenv(envSeeds), ",")})
	case kind == "udp":
		return udp.OpenInterface(ifname, udp.Config{})
	case kind == "packet":
		return packet.Open(ifname, packet.Config{})
	case kind == "xdp":
		return xdp.Open(ifname, xdp.Config{})
	}
	link, err := ring.Open(ifname, ring.Config{})
	if err == nil {
		return link, nil
	}
	if kind == "" && (errors.Is(err, transport.ErrPermission) || errors.Is(err, transport.ErrNotSupported)) {
		log.Printf("no raw sockets here: a udp link instead (%v)", err)
		return udp.OpenInterface(ifname, udp.Config{})
	}
	return nil, err
}

// Each runs f for every node at once, and returns when all have returned.
func Each(nodes []*mcd.Endpoint, f func(*mcd.Endpoint) error) error {
	failed := make(chan error, len(nodes))
	for _, e := range nodes {
		go func() { failed <- f(e) }()
	}
	var errs []error
	for range nodes {
		errs = append(errs, <-failed)
	}
	return errors.Join(errs...)
}
