package rpc_test

import (
	"context"
	"fmt"
	"log"
	"strings"
	"time"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/mcdtest"
	"github.com/rawlane/rawlane/rpc"
)

// two opens calls on two nodes in memory.
func two() (client, server *rpc.Domain, stop func()) {
	eps, closeAll, err := mcdtest.Start(2, mcdtest.Config{})
	if err != nil {
		log.Fatal(err)
	}
	if client, err = rpc.Open(eps[0], rpc.Config{}); err != nil {
		log.Fatal(err)
	}
	if server, err = rpc.Open(eps[1], rpc.Config{}); err != nil {
		log.Fatal(err)
	}
	return client, server, func() { _ = client.Close(); _ = server.Close(); _ = closeAll() }
}

// A service of bytes.
func Example() {
	client, server, stop := two()
	defer stop()

	upper := func(_ context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
		return append(resp, strings.ToUpper(string(req))...), nil
	}
	if _, err := server.Serve("upper", rpc.ServerConfig{Handler: upper}); err != nil {
		log.Fatal(err)
	}

	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	resp, err := client.Call(ctx, 1, "upper", []byte("hello"))
	fmt.Printf("%s, %v\n", resp, err)
	_, err = client.Call(ctx, 1, "lower", []byte("hello"))
	fmt.Println(err)
	// Output:
	// HELLO, <nil>
	// call node 1, service lower: nobody serves it
}

// A service of values, and calls that may be made again.
func ExampleInvoke() {
	client, server, stop := two()
	defer stop()

	sum := func(_ context.Context, from mcd.NodeID, numbers []int) (total int, err error) {
		for _, n := range numbers {
			total += n
		}
		return total, nil
	}
	if _, err := server.Serve("sum", rpc.ServerConfig{Handler: rpc.Typed(rpc.JSON, sum)}); err != nil {
		log.Fatal(err)
	}
	total, err := rpc.Invoke[int](context.Background(), client, rpc.JSON, 1, "sum", []int{1, 2, 39}, rpc.Options{Idempotent: true})
	fmt.Println(total, err)
	// Output: 42 <nil>
}

// A brief handler runs in the goroutine that polls.
func ExampleServerConfig() {
	client, server, stop := two()
	defer stop()

	length := func(_ context.Context, _ mcd.NodeID, req, resp []byte) ([]byte, error) {
		return fmt.Append(resp, len(req)), nil
	}
	s, err := server.Serve("length", rpc.ServerConfig{Handler: length, Inline: true})
	if err != nil {
		log.Fatal(err)
	}
	defer s.Close()
	resp, err := client.Call(context.Background(), 1, "length", []byte("12345"))
	fmt.Printf("%s, %v\n", resp, err)
	// Output: 5, <nil>
}
