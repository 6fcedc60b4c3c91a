package server

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/rawlane/rawlane/vlan"
	"github.com/rawlane/rawlane/vlan/manager/api"
)

// Bounds on a connection. A session's stream lifts those on reading and writing.
const (
	headerTimeout = 5 * time.Second
	bodyTimeout   = 30 * time.Second
	answerTimeout = 30 * time.Second
	idleTimeout   = 2 * time.Minute
	// maxHeader bounds the header of a request, in bytes.
	maxHeader = 16 << 10
	// maxReport bounds a report of counters, in bytes: one counter takes up to 100.
	maxReport = 100 * vlan.MaxCounts
	// maxScrapers bounds the connections of a read-only listener.
	maxScrapers = 32
	// shortBody is the length of a body, in bytes, up to which any number of requests may have one
	// at once, and maxLong the number of longer ones: so bodies take 100 MiB at most.
	shortBody = 64 << 10
	maxLong   = 4
	// largeBody is the length of a body, in bytes, above which the plan in it is decoded and
	// validated while no other such one is: that takes 20 times the length.
	largeBody = 1 << 20
	// shownPath and shownMessage bound what the log shows of a request that is refused, in bytes:
	// its header may be a stranger's.
	shownPath    = 128
	shownMessage = 1 << 10
)

// requestsOfOperators are those of operators and programs.
func (s *Server) requestsOfOperators() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /v1/table":                   endpoint(s, "table: read", s.getTable),
		"PUT /v1/table":                   endpoint(s, "table: set", s.putTable),
		"PATCH /v1/pairs":                 endpoint(s, "pairs: change", s.patchPairs),
		"POST /v1/reset":                  endpoint(s, "table: reset", s.postReset),
		"POST /v1/rollback":               endpoint(s, "table: roll back", s.postRollback),
		"GET /v1/history":                 endpoint(s, "history: read", s.getHistory),
		"GET /v1/log":                     endpoint(s, "log: read", s.getLog),
		"GET /v1/counters":                endpoint(s, "counters: read", s.getCounters),
		"GET /v1/nic":                     endpoint(s, "nic: read", s.getNIC),
		"POST /v1/prepare":                endpoint(s, "change: prepare", s.postPrepare),
		"POST /v1/commit":                 endpoint(s, "change: commit", s.postCommit),
		"POST /v1/abort":                  endpoint(s, "change: abort", s.postAbort),
		"POST /v1/sessions":               http.HandlerFunc(s.postSession),
		"PATCH /v1/sessions/{id}/pairs":   ofSession(s, "session: set pairs", s.patchSession),
		"DELETE /v1/sessions/{id}/pairs":  ofSession(s, "session: reset", s.resetSession),
		"POST /v1/sessions/{id}/applied":  ofSession(s, "session: confirm", s.postApplied),
		"POST /v1/sessions/{id}/counters": ofSession(s, "session: report", s.postCounters),
	}
}

// requestsOfScrapers are those that change nothing and tell nothing but the manager's state.
func (s *Server) requestsOfScrapers() map[string]http.Handler {
	return map[string]http.Handler{
		"GET /v1/version": endpoint(s, "version: read", s.getVersion),
		"GET /v1/health":  endpoint(s, "health: read", s.getHealth),
		"GET /v1/paths":   endpoint(s, "paths: read", s.getPaths),
		"GET /metrics":    http.HandlerFunc(s.getMetrics),
	}
}

// newHTTP returns an HTTP server of requests.
func (s *Server) newHTTP(all ...map[string]http.Handler) *http.Server {
	mux := http.NewServeMux()
	for _, requests := range all {
		for pattern, h := range requests {
			limit := int64(api.MaxBody)
			if strings.HasSuffix(pattern, "/{id}/counters") {
				limit = maxReport
			}
			mux.Handle(pattern, http.MaxBytesHandler(h, limit))
		}
	}
	return &http.Server{
		Handler:           s.guard(mux),
		ReadHeaderTimeout: headerTimeout,
		ReadTimeout:       bodyTimeout,
		WriteTimeout:      answerTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       withCaller,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
}

// admit bounds the memory of requests: one that has a long body, or an answer of all plans, waits
// until few others of its kind are under way; so does one for all paths or the counters of all
// routes, where those of a read-only address, which are strangers', hold up no operator. The caller
// calls release when it is done.
func (s *Server) admit(r *http.Request) (release func(), err error) {
	var places chan struct{}
	isListing := r.URL.Path == "/v1/paths" || r.URL.Path == "/metrics" && wantsRoutes(r)
	switch {
	case isListing && r.Context().Value(http.ServerContextKey) == s.readOnly:
		places = s.strangersListings
	case isListing:
		places = s.listings
	case r.ContentLength < 0, r.ContentLength > shortBody, r.URL.Path == "/v1/history":
		places = s.long
	default:
		return func() {}, nil
	}
	select {
	case places <- struct{}{}:
		return func() { <-places }, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// endpoint makes a handler of f: it decodes the request's body into a Q, and writes f's answer or
// error.
func endpoint[Q any](s *Server, act string, f func(*http.Request, *Q) (any, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := new(Q)
		var body []byte
		release, err := s.admit(r)
		if err == nil {
			defer release()
			body, err = readBody(r)
		}
		if len(body) > largeBody {
			s.large <- struct{}{} // only now: who sends slowly holds up no other
			defer func() { <-s.large }()
		}
		if err == nil {
			err = decodeBody(body, q)
		}
		if c, ok := any(q).(interface{ check() error }); ok && err == nil {
			err = c.check()
		}
		var answer any
		if err == nil {
			answer, err = f(r, q)
		}
		if err != nil {
			s.refuse(w, r, fmt.Errorf("%s: %w", act, err))
			return
		}
		if v, ok := versionOf(answer); ok {
			w.Header().Set("ETag", strconv.Quote(v.String()))
		}
		writeJSON(w, http.StatusOK, answer)
	})
}

func versionOf(answer any) (api.Version, bool) {
	switch a := answer.(type) {
	case *api.Table:
		return a.Version, true
	case api.Changed:
		return a.Version, true
	case api.Committed:
		return a.Version, true
	}
	return 0, false
}

// guard counts requests, refuses those of web pages, and makes errors of the mux, such as for an
// unknown path, JSON as the others. The body of a GET or a HEAD is not read: a scraper's must not
// keep those of operators waiting.
func (s *Server) guard(mux *http.ServeMux) http.Handler {
	browsers := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.requests++
		closed := s.closed
		if !closed {
			s.served.Add(1) // Close waits for requests under way
		}
		s.mu.Unlock()
		if closed {
			s.refuse(w, r, api.ErrClosed)
			return
		}
		defer s.served.Done()
		if browsers.Check(r) != nil || !isOwnName(r) {
			s.refuse(w, r, fmt.Errorf("%w: %s %s: a web page of another origin may not ask for this",
				api.ErrForbidden, r.Method, r.URL.Path))
			return
		}
		if r.Method == http.MethodGet || r.Method == http.MethodHead { // the mux takes a HEAD for a GET
			r.Body, r.ContentLength = http.NoBody, 0
		}
		h, pattern := mux.Handler(r)
		if pattern == "" {
			s.refuseUnknown(w, r, h)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// isOwnName reports whether a request on a loopback address without TLS names that address as its
// host. A web page whose name was made to stand for the address names its own.
func isOwnName(r *http.Request) bool {
	local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if !ok || r.TLS != nil || !isLoopback(local) {
		return true
	}
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	_, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil || host == "localhost"
}

func isLoopback(a net.Addr) bool {
	t, ok := a.(*net.TCPAddr)
	return ok && t.IP.IsLoopback()
}

// refuseUnknown refuses a request that the mux does not know, with the mux's status: 404, or 405 if
// another method would do.
func (s *Server) refuseUnknown(w http.ResponseWriter, r *http.Request, h http.Handler) {
	probe := &statusOnly{header: w.Header()}
	h.ServeHTTP(probe, r)
	e := &api.Error{Code: "not_found",
		Message: fmt.Sprintf("%s %s: no such request (see docs/manager-api.md)", r.Method, r.URL.Path)}
	s.writeError(w, e, probe.status)
}

// statusOnly keeps a handler's status and header, and drops its body.
type statusOnly struct {
	header http.Header
	status int
}

func (p *statusOnly) Header() http.Header         { return p.header }
func (p *statusOnly) WriteHeader(status int)      { p.status = status }
func (p *statusOnly) Write(b []byte) (int, error) { return len(b), nil }

// refuse answers with an error.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, err error) {
	e, status := api.Refusal(err)
	s.log.Info("refused", "method", cut(r.Method, shownPath), "path", cut(r.URL.Path, shownPath), "from", callerOf(r),
		"code", e.Code, "message", cut(e.Message, shownMessage))
	s.writeError(w, e, status)
}

// cut returns the beginning of a text, and says so if there is more.
func cut(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

func (s *Server) writeError(w http.ResponseWriter, e *api.Error, status int) {
	s.mu.Lock()
	s.refused[e.Code]++
	s.mu.Unlock()
	writeJSON(w, status, errorAnswer{e})
}

// errorAnswer is the answer to a request that is refused.
type errorAnswer struct {
	Error *api.Error `json:"error"`
}

func writeJSON(w http.ResponseWriter, status int, doc any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(doc) // the client may be gone, which changes nothing here
}
