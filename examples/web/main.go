// Command web is a web server on node 1 and its client on node 0: net/http over rawlane, and
// nothing else. It is a whole program, to copy. (examples/http does the same over TCP beside it,
// with TLS, and measures.)
//
//	go run ./examples/web                                     both nodes in this process
//	go build ./examples/web && rawlane run -n 2 ./web         a process for each, on kernel links
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"time"

	"github.com/rawlane/rawlane/cluster/start"
	"github.com/rawlane/rawlane/rawnet"
)

func main() { start.Main(start.Config{Nodes: 2, Exact: true, Limit: time.Minute}, web) }

// web is each node's part, in one process or in two.
func web(ctx context.Context, n *start.Node) error {
	network, err := rawnet.Open(n.Endpoint, rawnet.Config{})
	if err != nil {
		return err
	}
	part := ask
	if n.Node() == 1 {
		part = serve
	}
	return errors.Join(part(ctx, n, network), network.Close())
}

// serve answers requests until node 0 has no more.
func serve(ctx context.Context, n *start.Node, network *rawnet.Net) error {
	l, err := network.Listen("80") // the port of a URL
	if err != nil {
		return err
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			fmt.Fprintf(w, "hello, %s: this is node 1", r.RemoteAddr)
		}),
	}
	go func() { // until the server is closed
		if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
			log.Print(err)
		}
	}()
	_, err = n.Exchange(ctx, nil) // node 0 has its answer
	return errors.Join(err, server.Close())
}

// ask asks node 1, and tells it that this was all.
func ask(ctx context.Context, n *start.Node, network *rawnet.Net) error {
	client := &http.Client{Transport: &http.Transport{DialContext: network.DialWait}} // node 1 may be late
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://1/", nil)
	if err != nil {
		return err
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	body, err := io.ReadAll(response.Body)
	if err = errors.Join(err, response.Body.Close()); err != nil {
		return err
	}
	fmt.Printf("node 0 hears %q\n", body)
	client.CloseIdleConnections()
	_, err = n.Exchange(ctx, nil)
	return err
}
