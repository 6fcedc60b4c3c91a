package rpc

import (
	"context"
	"encoding/json"

	"github.com/rawlane/rawlane/mcd"
)

// Codec turns values into bytes and back, for Invoke and Typed: JSON, or one of the user's.
type Codec interface {
	Marshal(v any) ([]byte, error)
	Unmarshal(b []byte, v any) error
}

// JSON is encoding/json as a Codec.
var JSON Codec = jsonCodec{}

type jsonCodec struct{}

func (jsonCodec) Marshal(v any) ([]byte, error)   { return json.Marshal(v) }
func (jsonCodec) Unmarshal(b []byte, v any) error { return json.Unmarshal(b, v) }

// Invoke is CallWith of values.
func Invoke[Resp, Req any](
	ctx context.Context, d *Domain, codec Codec, to mcd.NodeID, service string, req Req, o Options,
) (resp Resp, err error) {
	b, err := codec.Marshal(req)
	if err != nil {
		return resp, callError(to, service, err)
	}
	if b, err = d.CallWith(ctx, to, service, b, o); err != nil {
		return resp, err
	}
	if err = codec.Unmarshal(b[len(o.Response):], &resp); err != nil {
		err = callError(to, service, err)
	}
	return resp, err
}

// Typed makes a Handler of a function of values.
func Typed[Resp, Req any](codec Codec, f func(ctx context.Context, from mcd.NodeID, req Req) (Resp, error)) Handler {
	return func(ctx context.Context, from mcd.NodeID, b, out []byte) ([]byte, error) {
		var req Req
		if err := codec.Unmarshal(b, &req); err != nil {
			return nil, err
		}
		resp, err := f(ctx, from, req)
		if err != nil {
			return nil, err
		}
		b, err = codec.Marshal(resp)
		return append(out, b...), err
	}
}
