package manager

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"

	"github.com/rawlane/rawlane/vlan/plan"
)

// Client asks one manager. Its methods are the requests of docs/manager-api.md. An error is the manager's refusal, an *Error, or
// ErrUnreachable, or ErrProtocol if something else answers.
type Client struct {
	addr Addr
	http *http.Client
	base string
}

// NewClient returns a client of the manager at addr. With a TLS configuration, which has the client's certificate and the
// manager's CA, it speaks TLS over TCP.
func NewClient(addr Addr, config *tls.Config) *Client {
	c := &Client{addr: addr, base: "http://manager"}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return addr.dial(ctx, nil) }}
	if addr.Network == "tcp" {
		c.base = "http://" + addr.Address
		if config != nil {
			c.base, transport.TLSClientConfig = "https://"+addr.Address, config
		}
	}
	c.http = &http.Client{Transport: transport}
	return c
}

// Addr returns the manager's address.
func (c *Client) Addr() Addr { return c.addr }

// Close closes idle connections.
func (c *Client) Close() { c.http.CloseIdleConnections() }

// ask sends a request and decodes its answer.
func (c *Client) ask(ctx context.Context, method, path string, version uint64, request, answer any) error {
	err := c.exchange(ctx, method, path, version, request, answer)
	if err != nil {
		return fmt.Errorf("manager %v: %w", c.addr, err)
	}
	return nil
}

func (c *Client) exchange(ctx context.Context, method, path string, version uint64, request, answer any) error {
	var payload io.Reader
	if request != nil {
		b, err := json.Marshal(request)
		if err != nil {
			return err
		}
		payload = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, payload)
	if err != nil {
		return err
	}
	if version != 0 {
		r.Header.Set("If-Match", etag(version))
	}
	w, err := c.http.Do(r)
	if err != nil {
		var bare *net.OpError
		if errors.As(err, &bare) {
			err = bare // the URL says nothing that the address does not
		}
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	defer func() { _ = w.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(w.Body, 4*MaxBody))
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnreachable, err)
	}
	return understand(w.StatusCode, b, answer)
}

// understand decodes an answer or a refusal.
func understand(status int, b []byte, answer any) error {
	if status == http.StatusOK {
		if err := json.Unmarshal(b, answer); err != nil {
			return fmt.Errorf("%w: its answer: %w", ErrProtocol, err)
		}
		return nil
	}
	var refused struct {
		Error *Error `json:"error"`
	}
	if json.Unmarshal(b, &refused) != nil || refused.Error == nil || refused.Error.Code == "" {
		return fmt.Errorf("%w: HTTP status %d (is it a rawlane manager, of this version?)", ErrProtocol, status)
	}
	if refused.Error.Code == notFound {
		return fmt.Errorf("%w: it does not know this request: %w (is it older than this program?)", ErrProtocol, refused.Error)
	}
	return refused.Error
}

// Table asks for the table.
func (c *Client) Table(ctx context.Context) (*Table, error) {
	t := new(Table)
	if err := c.ask(ctx, http.MethodGet, "/v1/table", 0, nil, t); err != nil {
		return nil, err
	}
	return t, nil
}

// SetPlan replaces the node's plan. With a version other than 0 it does so only if the plan is still that version's: else the error is
// ErrChanged.
func (c *Client) SetPlan(ctx context.Context, p *plan.Plan, reason string, version uint64) (a Changed, err error) {
	return a, c.ask(ctx, http.MethodPut, "/v1/table", version, map[string]any{"plan": Plan{*p}, "reason": reason}, &a)
}

// SetPairs lays changes over the node's plan, until its reset or the next plan.
func (c *Client) SetPairs(ctx context.Context, changes []Change, reason string, version uint64) (a Changed, err error) {
	return a, c.ask(ctx, http.MethodPatch, "/v1/pairs", version, map[string]any{"pairs": changes, "reason": reason}, &a)
}

// Reset goes back to the plan.
func (c *Client) Reset(ctx context.Context, reason string) (a Changed, err error) {
	return a, c.ask(ctx, http.MethodPost, "/v1/reset", 0, map[string]any{"reason": reason}, &a)
}

// Rollback goes back to what was in force before: with an id only if what is in force came with that group change.
func (c *Client) Rollback(ctx context.Context, id, reason string) (a Changed, err error) {
	return a, c.ask(ctx, http.MethodPost, "/v1/rollback", 0, map[string]any{"id": id, "reason": reason}, &a)
}

// History asks for what was in force before.
func (c *Client) History(ctx context.Context) (h History, err error) {
	return h, c.ask(ctx, http.MethodGet, "/v1/history", 0, nil, &h)
}

// Log asks for the latest changes.
func (c *Client) Log(ctx context.Context) (l Log, err error) {
	return l, c.ask(ctx, http.MethodGet, "/v1/log", 0, nil, &l)
}

// Counters asks for what the node's programs have sent.
func (c *Client) Counters(ctx context.Context) (n Counters, err error) {
	return n, c.ask(ctx, http.MethodGet, "/v1/counters", 0, nil, &n)
}

// NIC asks for the node's network interface.
func (c *Client) NIC(ctx context.Context) (n NIC, err error) {
	return n, c.ask(ctx, http.MethodGet, "/v1/nic", 0, nil, &n)
}

// About asks for the manager's versions.
func (c *Client) About(ctx context.Context) (a About, err error) {
	return a, c.ask(ctx, http.MethodGet, "/v1/version", 0, nil, &a)
}

// Health asks whether the manager does its work.
func (c *Client) Health(ctx context.Context) (h Health, err error) {
	return h, c.ask(ctx, http.MethodGet, "/v1/health", 0, nil, &h)
}

// prepare, commit and abort are the steps of Apply.
func (c *Client) prepare(ctx context.Context, q *prepareRequest, version uint64) (p Prepared, err error) {
	return p, c.ask(ctx, http.MethodPost, "/v1/prepare", version, q, &p)
}

func (c *Client) commit(ctx context.Context, id string) (a Committed, err error) {
	return a, c.ask(ctx, http.MethodPost, "/v1/commit", 0, changeID{id}, &a)
}

func (c *Client) abort(ctx context.Context, id string) error {
	return c.ask(ctx, http.MethodPost, "/v1/abort", 0, changeID{id}, new(Changed))
}
