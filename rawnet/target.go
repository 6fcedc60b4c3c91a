package rawnet

import (
	"context"
	"net"
)

// DialTarget is DialContext without a network. It fits grpc.WithContextDialer:
//
//	grpc.NewClient("passthrough:///3:echo", grpc.WithContextDialer(n.DialTarget), ...)
func (n *Net) DialTarget(ctx context.Context, address string) (net.Conn, error) {
	return n.DialContext(ctx, Network, address)
}
