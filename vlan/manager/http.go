package manager

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"os"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan"

	"github.com/rawlane/rawlane/vlan/plan"
)

func (s *Server) newHTTP() *http.Server {
	mux := http.NewServeMux()
	for pattern, f := range map[string]func(*http.Request) (any, error){
		"GET /v1/table":     s.getTable,
		"PUT /v1/table":     s.putTable,
		"PATCH /v1/pairs":   s.patchPairs,
		"POST /v1/reset":    s.postReset,
		"POST /v1/rollback": s.postRollback,
		"GET /v1/history":   s.getHistory,
		"GET /v1/log":       s.getLog,
		"GET /v1/counters":  s.getCounters,
		"GET /v1/nic":       s.getNIC,
		"GET /v1/version":   s.getVersion,
		"GET /v1/health":    s.getHealth,
		"POST /v1/prepare":  s.postPrepare,
		"POST /v1/commit":   s.postCommit,
		"POST /v1/abort":    s.postAbort,
	} {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { s.answer(w, r, f) })
	}
	mux.HandleFunc("GET /metrics", s.getMetrics)
	mux.HandleFunc("GET "+sessionPath, s.upgrade)
	return &http.Server{
		Handler:           s.counted(mux),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    MaxHeader,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

// counted counts requests, bounds their bodies, refuses what a web page has a browser send, and makes errors of the router's, such as for
// an unknown path, JSON as the others.
func (s *Server) counted(mux *http.ServeMux) http.Handler {
	browsers := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.tally.requests++
		closed := s.closed
		if !closed {
			s.served.Add(1) // Close waits for what is being answered
		}
		s.mu.Unlock()
		if closed {
			e, status := refusal(ErrClosed)
			s.writeError(w, e, status)
			return
		}
		defer s.served.Done()
		if err := browsers.Check(r); err != nil {
			s.writeError(w, &Error{Code: "browser", Message: fmt.Sprintf("%s %s: a web page of another origin may not ask for this", r.Method, r.URL.Path)}, http.StatusForbidden)
			return
		}
		if _, pattern := mux.Handler(r); pattern == "" {
			s.writeError(w, &Error{Code: notFound, Message: fmt.Sprintf("%s %s: no such request (see docs/manager-api.md)", r.Method, r.URL.Path)}, http.StatusNotFound)
			return
		}
		r.Body = http.MaxBytesReader(w, r.Body, MaxBody)
		mux.ServeHTTP(w, r)
	})
}

// answer writes what f returns.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, f func(*http.Request) (any, error)) {
	doc, err := f(r)
	if err != nil {
		e, status := refusal(err)
		s.log.Info("refused", "method", r.Method, "path", r.URL.Path, "from", r.RemoteAddr, "code", e.Code, "message", e.Message)
		s.writeError(w, e, status)
		return
	}
	switch d := doc.(type) {
	case *Table:
		w.Header().Set("ETag", etag(d.Version))
	case Changed:
		w.Header().Set("ETag", etag(d.Version))
	}
	writeJSON(w, http.StatusOK, doc)
}

func (s *Server) writeError(w http.ResponseWriter, e *Error, status int) {
	s.mu.Lock()
	s.tally.refused[e.Code]++
	s.mu.Unlock()
	writeJSON(w, status, struct {
		Error *Error `json:"error"`
	}{e})
}

func writeJSON(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc) // the caller may have gone, which is no concern of ours
}

func etag(version uint64) string { return strconv.Quote(strconv.FormatUint(version, 10)) }

// conditionOf reads If-Match.
func conditionOf(r *http.Request) (condition, error) {
	text := r.Header.Get("If-Match")
	if text == "" || text == "*" {
		return condition{}, nil
	}
	version, err := strconv.ParseUint(strings.Trim(text, `"`), 10, 64)
	if err != nil {
		return condition{}, badRequest("If-Match: %q (want the version of a table, as its ETag has it)", text)
	}
	return condition{version, true}, nil
}

// body decodes a request's JSON object. Without a body it is as with {}, if that will do.
func body(r *http.Request, into any, optional bool) error {
	b, err := io.ReadAll(r.Body)
	var big *http.MaxBytesError
	switch {
	case errors.As(err, &big):
		return fmt.Errorf("%w: more than %d bytes", errTooLarge, big.Limit)
	case err != nil:
		return badRequest("body: %v", err)
	case len(b) == 0 && optional:
		return nil
	}
	return decodeStrict(b, into)
}

// reason is the part of a request that says why.
type reason struct {
	Reason string `json:"reason,omitempty"`
}

func (r reason) check() error { return checkText("reason", r.Reason, MaxReason) }

// checkText refuses a text that is too long, or that would do more to a terminal than be read there.
func checkText(what, text string, most int) error {
	if len(text) > most {
		return badRequest("%s: %d bytes (want at most %d)", what, len(text), most)
	}
	if i := strings.IndexFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }); i >= 0 || !utf8.ValidString(text) {
		return badRequest("%s: %q (want text that can be printed, in one line)", what, text)
	}
	return nil
}

func (s *Server) putTable(r *http.Request) (any, error) {
	var req struct {
		reason
		Plan *Plan `json:"plan"`
	}
	c, err := conditionOf(r)
	switch {
	case err != nil:
	case strings.Contains(r.Header.Get("Content-Type"), "yaml"):
		req.Plan, err = planFile(r)
	default:
		if err = body(r, &req, false); err == nil && req.Plan == nil {
			err = badRequest("no plan (want {\"plan\":{...}}, or a plan's file with Content-Type: application/yaml)")
		}
	}
	if err == nil {
		err = req.check()
	}
	if err != nil {
		return nil, fmt.Errorf("table: set: %w", err)
	}
	answer, err := s.setPlan(&req.Plan.Plan, req.Reason, c)
	if err != nil {
		return nil, fmt.Errorf("table: set: %w", err)
	}
	return answer, nil
}

// planFile reads a plan as files have it.
func planFile(r *http.Request) (*Plan, error) {
	p, err := plan.Parse("body", r.Body)
	if big := (*http.MaxBytesError)(nil); errors.As(err, &big) {
		return nil, fmt.Errorf("%w: more than %d bytes", errTooLarge, big.Limit)
	}
	if err != nil {
		return nil, err
	}
	return &Plan{*p}, nil
}

// namedChange is a Change that may name nodes as a plan does: by number, name or address.
type namedChange struct {
	A   string        `json:"a"`
	B   string        `json:"b"`
	VID transport.VID `json:"vid"`
}

func (s *Server) patchPairs(r *http.Request) (any, error) {
	var req struct {
		reason
		Pairs []namedChange `json:"pairs"`
	}
	c, err := conditionOf(r)
	if err == nil {
		err = body(r, &req, false)
	}
	if err == nil && len(req.Pairs) == 0 {
		err = badRequest("no pairs (want {\"pairs\":[{\"a\":NODE,\"b\":NODE,\"vid\":N},...]}, NODE a number, name or address of the plan's)")
	}
	if err == nil {
		err = req.check()
	}
	var changes []Change
	if err == nil {
		changes, err = resolve(req.Pairs, s.Plan())
	}
	if err == nil {
		var answer Changed
		if answer, err = s.setPairs(changes, req.Reason, c); err == nil {
			return answer, nil
		}
	}
	return nil, fmt.Errorf("pairs: change: %w", err)
}

// resolve finds the addresses of the nodes that changes name.
func resolve(named []namedChange, plan *plan.Plan) ([]Change, error) {
	if plan == nil {
		return nil, fmt.Errorf("%w (set one first: PUT /v1/table, or rawlane route load)", ErrNoPlan)
	}
	changes := make([]Change, len(named))
	for i, n := range named {
		changes[i].VID = n.VID
		for _, end := range []struct {
			name string
			mac  *transport.MAC
		}{{n.A, &changes[i].A}, {n.B, &changes[i].B}} {
			node, err := plan.FindNode(end.name)
			if err != nil {
				return nil, fmt.Errorf("pairs[%d]: %w", i, err)
			}
			*end.mac = plan.Nodes[node].MAC
		}
	}
	return changes, nil
}

func (s *Server) postReset(r *http.Request) (any, error) {
	var req reason
	c, err := conditionOf(r)
	if err == nil {
		err = body(r, &req, true)
	}
	if err == nil {
		err = req.check()
	}
	var answer Changed
	if err == nil {
		answer, err = s.reset(req.Reason, c)
	}
	if err != nil {
		return nil, fmt.Errorf("table: reset: %w", err)
	}
	return answer, nil
}

func (s *Server) postRollback(r *http.Request) (any, error) {
	var req struct {
		reason
		ID string `json:"id,omitempty"`
	}
	err := body(r, &req, true)
	if err == nil {
		err = req.check()
	}
	var answer Changed
	if err == nil {
		answer, err = s.rollback(req.ID, req.Reason)
	}
	if err != nil {
		return nil, fmt.Errorf("table: roll back: %w", err)
	}
	return answer, nil
}

func (s *Server) getVersion(*http.Request) (any, error) {
	return About{Schema, Protocol, s.cfg.Program, s.cfg.MAC, s.cfg.Interface, s.started, os.Getpid()}, nil
}

// upgrade makes a session of a connection.
func (s *Server) upgrade(w http.ResponseWriter, r *http.Request) {
	want := fmt.Sprintf("%s/%d", upgradeName, Protocol)
	if got := r.Header.Get("Upgrade"); got != want {
		w.Header().Set("Upgrade", want)
		s.writeError(w, &Error{Code: "protocol", Message: fmt.Sprintf("session: Upgrade %q (this manager speaks %s)", got, want)}, http.StatusUpgradeRequired)
		return
	}
	conn, rw, err := http.NewResponseController(w).Hijack()
	if err != nil {
		s.writeError(w, &Error{Code: "internal", Message: "session: " + err.Error()}, http.StatusInternalServerError)
		return
	}
	sub := &subscriber{s: s, conn: conn, wake: make(chan struct{}, 1), pending: make(map[transport.MAC]vlan.Route)}
	s.mu.Lock()
	closed := s.closed
	if !closed {
		s.sessions.open[conn] = true
	}
	s.mu.Unlock()
	if closed {
		_ = conn.Close() // nothing can be said any more
		return
	}
	defer s.forget(sub)
	_, err = fmt.Fprintf(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n", want)
	if err == nil {
		sub.serve(rw.Reader)
	}
}

// forget closes a session's connection.
func (s *Server) forget(sub *subscriber) {
	_ = sub.conn.Close() // it may be closed already
	s.mu.Lock()
	delete(s.sessions.open, sub.conn)
	s.mu.Unlock()
}
