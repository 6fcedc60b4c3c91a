package server

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
	"github.com/rawlane/rawlane/vlan/topology"
)

// maxID bounds the id of a session or of a group change, in bytes.
const maxID = 64

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{api.ErrBadRequest}, args...)...)
}

// readBody reads a request's body.
func readBody(r *http.Request) ([]byte, error) {
	if strings.Contains(r.Header.Get("Content-Type"), "yaml") {
		return nil, badRequest("body: YAML (want JSON: rawlane route load FILE converts a plan's file)")
	}
	b, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, cmp.Or(tooLarge(err), badRequest("body: %v", err))
	}
	return b, nil
}

// decodeBody decodes a body's JSON object. No body is as good as {}.
func decodeBody(b []byte, into any) error {
	if len(b) == 0 {
		return nil
	}
	if err := api.Decode(b, into); err != nil {
		return err
	}
	if _, isLong := into.(*api.SessionReport); isLong {
		return nil // a program's own words, and up to 25 MiB of them
	}
	return api.CheckNames(b)
}

// tooLarge returns an error that is api.ErrTooLarge if a body was cut off at its limit.
func tooLarge(err error) error {
	if big := (*http.MaxBytesError)(nil); errors.As(err, &big) {
		return fmt.Errorf("%w: more than %d bytes", api.ErrTooLarge, big.Limit)
	}
	return nil
}

// reason is the part of a request that says why.
type reason struct {
	Reason string `json:"reason,omitempty"`
}

func (r reason) check() error { return checkText("reason", r.Reason, api.MaxReason) }

// checkText refuses a text that is too long, or that would do more to a terminal than be read
// there.
func checkText(what, text string, most int) error {
	if len(text) > most {
		return badRequest("%s: %d bytes (want at most %d)", what, len(text), most)
	}
	isBad := func(r rune) bool { return !unicode.IsPrint(r) }
	if strings.ContainsFunc(text, isBad) || !utf8.ValidString(text) {
		return badRequest("%s: %q (want text that can be printed, in one line)", what, text)
	}
	return nil
}

// checkNetwork returns why a plan cannot be carried out on the network that it names, if a
// generator makes that network. A network's file is beside the plan's, and is checked where the
// plan is read from there. The error is plan.ErrInvalid.
func checkNetwork(p *plan.Plan) error {
	if !topology.IsSpec(p.Topology) {
		return nil
	}
	if err := p.Validate(); err != nil {
		return err
	}
	network, err := topology.Parse(p.Topology)
	if err != nil {
		return fmt.Errorf("%w: %w", plan.ErrInvalid, err)
	}
	if err := p.Check(network); err != nil {
		return fmt.Errorf("on %s: %w", p.Topology, err)
	}
	return nil
}
