// Package programs is programs that know package net alone, for comparisons: a web server, a gRPC
// server and one of net/rpc, and their clients. They run over whatever listener and dialer they are
// given.
package programs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/rpc"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"
)

// Dial connects to an address.
type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Program is a server and its client.
type Program struct {
	// Serve answers calls until the listener is closed by stop.
	Serve func(l net.Listener) (stop func())
	// Client returns a call with so many bytes, which are checked when they come back.
	Client func(dial Dial, addr string, size int) (call func(ctx context.Context) error, closeAll func(), err error)
}

// Programs by name.
var Programs = map[string]Program{
	"http":   {Serve: serveHTTP, Client: clientHTTP},
	"grpc":   {Serve: serveGRPC, Client: clientGRPC},
	"netrpc": {Serve: serveRPC, Client: clientRPC},
}

var errChanged = errors.New("the answer is not what was sent")

const headerTimeout = time.Minute

// serveHTTP answers a GET with as many bytes as its path says.
func serveHTTP(l net.Listener) (stop func()) {
	server := &http.Server{ReadHeaderTimeout: headerTimeout, Handler: http.HandlerFunc(
		func(w http.ResponseWriter, r *http.Request) {
			var n int
			if _, err := fmt.Sscanf(r.URL.Path, "/%d", &n); err != nil || n < 0 || n > maxSize {
				http.Error(w, "want a number of bytes", http.StatusBadRequest)
				return
			}
			_, _ = w.Write(make([]byte, n)) // the client notices what is missing
		})}
	go func() { _ = server.Serve(l) }() // until stop
	return func() { _ = server.Close() }
}

// maxSize bounds an answer.
const maxSize = 1 << 24

func clientHTTP(dial Dial, addr string, size int) (func(context.Context) error, func(), error) {
	transport := &http.Transport{DialContext: dial}
	client := &http.Client{Transport: transport}
	url := fmt.Sprintf("http://%s/%d", addr, size)
	body := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
	return func(ctx context.Context) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		answer, err := client.Do(request)
		if err != nil {
			return err
		}
		body.Reset()
		_, err = body.ReadFrom(answer.Body)
		_ = answer.Body.Close()
		if err == nil && (answer.StatusCode != http.StatusOK || body.Len() != size) {
			err = fmt.Errorf("%s, %d bytes: %w", answer.Status, body.Len(), errChanged)
		}
		return err
	}, transport.CloseIdleConnections, nil
}

// method is what protoc makes of: service Echo { rpc Say(BytesValue) returns (BytesValue); }
const method = "/rawlane.bench.Echo/Say"

var echo = grpc.ServiceDesc{
	ServiceName: "rawlane.bench.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(
		_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
	) (any, error) {
		b := new(wrapperspb.BytesValue)
		return b, decode(b)
	}}},
}

func serveGRPC(l net.Listener) (stop func()) {
	server := grpc.NewServer()
	server.RegisterService(&echo, nil)
	go func() { _ = server.Serve(l) }() // until stop
	return server.Stop
}

func clientGRPC(dial Dial, addr string, size int) (func(context.Context) error, func(), error) {
	conn, err := grpc.NewClient("passthrough:///"+addr,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			return dial(ctx, "tcp", addr)
		}))
	if err != nil {
		return nil, nil, err
	}
	sent := wrapperspb.Bytes(bytes.Repeat([]byte{1}, size))
	return func(ctx context.Context) error {
		var got wrapperspb.BytesValue
		err := conn.Invoke(ctx, method, sent, &got)
		if err == nil && !bytes.Equal(got.Value, sent.Value) {
			err = errChanged
		}
		return err
	}, func() { _ = conn.Close() }, nil
}

// Echo is what the net/rpc server offers.
type Echo struct{}

// Say answers what it is told.
func (Echo) Say(told []byte, answer *[]byte) error {
	*answer = told
	return nil
}

func serveRPC(l net.Listener) (stop func()) {
	server := rpc.NewServer()
	_ = server.Register(Echo{}) // it has a method
	go func() {                 // until stop
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go server.ServeConn(c) // until the client closes
		}
	}()
	return func() { _ = l.Close() }
}

func clientRPC(dial Dial, addr string, size int) (func(context.Context) error, func(), error) {
	c, err := dial(context.Background(), "tcp", addr)
	if err != nil {
		return nil, nil, err
	}
	client := rpc.NewClient(c)
	sent := bytes.Repeat([]byte{1}, size)
	return func(ctx context.Context) error {
		var got []byte
		call := client.Go("Echo.Say", sent, &got, make(chan *rpc.Call, 1))
		select {
		case <-call.Done:
		case <-ctx.Done():
			return ctx.Err()
		}
		if call.Error == nil && !bytes.Equal(got, sent) {
			return errChanged
		}
		return call.Error
	}, func() { _ = client.Close() }, nil
}
