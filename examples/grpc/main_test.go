package main

import (
	"testing"

	"google.golang.org/grpc"

	"github.com/rawlane/rawlane/examples/bothways"
	"github.com/rawlane/rawlane/rawnet"
)

// A Net's dialer is one for gRPC as it is.
var _ = grpc.WithContextDialer((*rawnet.Net)(nil).DialTarget)

// The program runs, over rawlane and over TCP, and each answer is right.
func TestProgram(t *testing.T) {
	if err := bothways.Run(t.Context(), serve, ask(50)); err != nil {
		t.Fatal(err)
	}
}
