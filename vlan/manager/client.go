package manager

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/rawlane/rawlane/internal/unixsocket"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/plan"
)

// idleTimeout is how long a client keeps an unused connection: less than the manager, which would
// close it under a request.
const idleTimeout = time.Minute

// maxAnswer bounds an answer, in bytes: a history has the most.
const maxAnswer = (api.MaxHistory + 1) * api.MaxBody

// Client asks one manager. Its methods are the requests of docs/manager-api.md. An error is the
// manager's refusal, an *api.Error, or api.ErrUnreachable, or api.ErrProtocol if the answer is not
// a manager's.
type Client struct {
	addr      Addr
	host      string // of URLs
	dial      func(context.Context) (net.Conn, error)
	transport interface {
		http.RoundTripper
		CloseIdleConnections()
	}
}

// NewClient returns a client of the manager at addr. With a TLS configuration, which has the
// client's certificate and the manager's CA, it uses TLS over TCP.
func NewClient(addr Addr, config *tls.Config) *Client {
	at := addr
	if at.Network == "unix" {
		at.Address = unixsocket.Place(at.Address)
	}
	c := &Client{addr: addr, host: "manager"}
	c.dial = func(ctx context.Context) (net.Conn, error) { return at.dial(ctx, config) }
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) { return c.dial(ctx) }
	c.transport = &http.Transport{IdleConnTimeout: idleTimeout, DialContext: dial}
	if addr.Network == "tcp" {
		c.host = addr.Address
	}
	return c
}

// Addr returns the manager's address.
func (c *Client) Addr() Addr { return c.addr }

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// Table asks for the table.
func (c *Client) Table(ctx context.Context) (*api.Table, error) {
	return ask[*api.Table](ctx, c, http.MethodGet, "/v1/table", 0, nil)
}

// SetPlan replaces the node's plan. With a version other than 0 it does so only if the plan is
// still that of the version; else the error is api.ErrChanged.
func (c *Client) SetPlan(ctx context.Context, p *plan.Plan, reason string, version api.Version) (api.Changed, error) {
	return ask[api.Changed](ctx, c, http.MethodPut, "/v1/table", version,
		map[string]any{"plan": api.Plan{Plan: *p}, "reason": reason})
}

// SetPairs lays changes over the node's plan, until its reset or the next plan.
func (c *Client) SetPairs(
	ctx context.Context, changes []api.Change, reason string, version api.Version,
) (api.Changed, error) {
	return ask[api.Changed](ctx, c, http.MethodPatch, "/v1/pairs", version,
		map[string]any{"pairs": changes, "reason": reason})
}

// Reset goes back to the plan.
func (c *Client) Reset(ctx context.Context, reason string) (api.Changed, error) {
	return ask[api.Changed](ctx, c, http.MethodPost, "/v1/reset", 0, map[string]any{"reason": reason})
}

// Rollback goes back to the setting before the one in force, on this node alone.
func (c *Client) Rollback(ctx context.Context, reason string) (api.Changed, error) {
	return ask[api.Changed](ctx, c, http.MethodPost, "/v1/rollback", 0, map[string]any{"reason": reason})
}

// Prepare stages a change of several nodes. With a version it does so only if the plan is still
// that of the version.
func (c *Client) Prepare(ctx context.Context, q *api.PrepareRequest, version api.Version) (api.Prepared, error) {
	return ask[api.Prepared](ctx, c, http.MethodPost, "/v1/prepare", version, q)
}

// Commit puts a prepared change into force.
func (c *Client) Commit(ctx context.Context, id string) (api.Committed, error) {
	return ask[api.Committed](ctx, c, http.MethodPost, "/v1/commit", 0, map[string]any{"id": id})
}

// Abort discards a prepared change, or undoes a committed one. Of an unknown change there is
// nothing to abort, which is no error.
func (c *Client) Abort(ctx context.Context, id, reason string) (api.Changed, error) {
	return ask[api.Changed](ctx, c, http.MethodPost, "/v1/abort", 0, map[string]any{"id": id, "reason": reason})
}

// History asks for the settings before the one in force.
func (c *Client) History(ctx context.Context) (api.History, error) {
	return ask[api.History](ctx, c, http.MethodGet, "/v1/history", 0, nil)
}

// Log asks for the latest changes.
func (c *Client) Log(ctx context.Context) (api.Log, error) {
	return ask[api.Log](ctx, c, http.MethodGet, "/v1/log", 0, nil)
}

// Counters asks for what the node's programs have sent.
func (c *Client) Counters(ctx context.Context) (api.Counters, error) {
	return ask[api.Counters](ctx, c, http.MethodGet, "/v1/counters", 0, nil)
}

// NIC asks for the node's network interface.
func (c *Client) NIC(ctx context.Context) (api.NIC, error) {
	return ask[api.NIC](ctx, c, http.MethodGet, "/v1/nic", 0, nil)
}

// About asks for the manager's program and process.
func (c *Client) About(ctx context.Context) (api.About, error) {
	return ask[api.About](ctx, c, http.MethodGet, "/v1/version", 0, nil)
}

// Failover asks for the paths that the node's failover watches.
func (c *Client) Failover(ctx context.Context) (api.Failover, error) {
	return ask[api.Failover](ctx, c, http.MethodGet, "/v1/paths", 0, nil)
}

// Health asks whether the manager does its work.
func (c *Client) Health(ctx context.Context) (api.Health, error) {
	return ask[api.Health](ctx, c, http.MethodGet, "/v1/health", 0, nil)
}

// ask sends a request and decodes its answer.
func ask[A any](
	ctx context.Context, c *Client, method, path string, version api.Version, request any,
) (answer A, err error) {
	w, err := c.send(ctx, method, path, version, request)
	if err == nil {
		defer func() { _ = w.Body.Close() }()
		err = decode(w.Body, maxAnswer, &answer)
	}
	if errors.Is(err, context.DeadlineExceeded) && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		err = unreachable(context.Cause(ctx)) // it may say for how long the answer was awaited
	}
	if err != nil {
		return answer, fmt.Errorf("manager %v: %w", c.addr, err)
	}
	return answer, nil
}

// decode reads a body to its end, and decodes it into answer.
func decode(body io.Reader, limit int64, answer any) error {
	b, err := io.ReadAll(io.LimitReader(body, limit))
	if err != nil {
		return unreachable(err)
	}
	err = json.Unmarshal(b, answer)
	if err == nil && string(bytes.TrimSpace(b)) == "null" { // which leaves the answer as it was
		err = errors.New("null (want an object)")
	}
	if err != nil {
		return fmt.Errorf("%w: its answer: %w", api.ErrProtocol, err)
	}
	return nil
}

// send sends a request and returns the answer, whose body the caller closes; or an error, if the
// answer is a refusal.
func (c *Client) send(
	ctx context.Context, method, path string, version api.Version, request any,
) (*http.Response, error) {
	var body io.Reader
	if request != nil {
		b, err := json.Marshal(request)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://"+c.host+path, body)
	if err != nil {
		return nil, err
	}
	if version != 0 {
		r.Header.Set("If-Match", strconv.Quote(version.String()))
	}
	w, err := c.transport.RoundTrip(r)
	switch {
	case errors.As(err, new(tls.RecordHeaderError)):
		return nil, fmt.Errorf("%w: it does not speak TLS (leave --tls-cert, --tls-key and --tls-ca out): %w",
			api.ErrProtocol, err)
	case err != nil && strings.Contains(err.Error(), "malformed HTTP"): // package net/http has no type for it
		return nil, fmt.Errorf("%w: it does not answer as HTTP: %w", api.ErrProtocol, err)
	case err != nil:
		return nil, unreachable(cmp.Or(ctx.Err(), err))
	case w.StatusCode != http.StatusOK:
		return nil, refusal(w)
	}
	return w, nil
}

// unreachable makes an error api.ErrUnreachable, if it is not one already.
func unreachable(err error) error {
	cure := ""
	switch {
	case errors.Is(err, api.ErrUnreachable):
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		cure = " (is a manager running there?)"
	case errors.Is(err, fs.ErrPermission):
		cure = " (is this user in the socket's group?)"
	}
	return fmt.Errorf("%w: %w%s", api.ErrUnreachable, err, cure)
}

// refusal decodes an answer that is not 200.
func refusal(w *http.Response) error {
	var doc struct {
		Error *api.Error `json:"error"`
	}
	defer func() { _ = w.Body.Close() }()
	err := decode(w.Body, api.MaxBody, &doc)
	switch {
	case errors.Is(err, api.ErrUnreachable):
		return err
	case err != nil || doc.Error == nil || doc.Error.Code == "":
		return fmt.Errorf("%w: HTTP status %d (is it a rawlane manager, of this version?)",
			api.ErrProtocol, w.StatusCode)
	case errors.Is(doc.Error, api.ErrNotFound):
		return fmt.Errorf("%w: it does not know this request: %w (is it older than this program, "+
			"or is this its read-only address?)", api.ErrProtocol, doc.Error)
	}
	return doc.Error
}
