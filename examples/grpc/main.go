// Command grpc is a gRPC server and client, unchanged but for their listener and dialer. It prints
// how long a unary call takes over rawlane and over TCP.
//
//	go run ./examples/grpc                                    both nodes in this process
//	go build ./examples/grpc && rawlane run -n 2 ./grpc       a process for each, on kernel links
//
// Package bothways starts both ends and compares them: begin a program of your own with
// examples/web.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/rawlane/rawlane/examples/bothways"
)

func main() { bothways.Main(time.Minute, serve, ask(bothways.Rounds)) }

// method is what protoc makes of: service Echo { rpc Say(BytesValue) returns (BytesValue); }
const method = "/rawlane.example.Echo/Say"

var echo = grpc.ServiceDesc{
	ServiceName: "rawlane.example.Echo",
	HandlerType: (*any)(nil),
	Methods: []grpc.MethodDesc{{MethodName: "Say", Handler: func(
		_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor,
	) (any, error) {
		b := new(wrapperspb.BytesValue)
		return b, decode(b)
	}}},
}

// serve returns what it is sent.
func serve(listen bothways.Listen) (stop func(), err error) {
	l, err := listen("grpc")
	if err != nil {
		return nil, err
	}
	server := grpc.NewServer()
	server.RegisterService(&echo, nil)
	bothways.Serving("grpc", func() error { return server.Serve(l) }, grpc.ErrServerStopped)
	return server.Stop, nil
}

// ask measures calls with 64 bytes.
func ask(rounds int) func(context.Context, bothways.Way) error {
	return func(ctx context.Context, w bothways.Way) error {
		conn, err := grpc.NewClient("passthrough:///"+w.Addr("grpc"),
			grpc.WithTransportCredentials(insecure.NewCredentials()),
			// With a *rawnet.Net: grpc.WithContextDialer(n.DialTarget).
			grpc.WithContextDialer(func(ctx context.Context, addr string) (net.Conn, error) {
				return w.Dial(ctx, "tcp", addr)
			}))
		if err != nil {
			return err
		}
		defer func() { _ = conn.Close() }()
		sent := wrapperspb.Bytes(bytes.Repeat([]byte("ping"), 16))
		return w.Latency("gRPC, unary call", rounds, func() error {
			var got wrapperspb.BytesValue
			err := conn.Invoke(ctx, method, sent, &got)
			if err == nil && !bytes.Equal(got.Value, sent.Value) {
				return fmt.Errorf("%q came back, want %q", got.Value, sent.Value)
			}
			return err
		})
	}
}
