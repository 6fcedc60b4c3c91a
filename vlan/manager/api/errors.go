package api

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"

	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
	"github.com/rawlane/rawlane/vlan/plan"
)

// Sentinels of a manager's refusals. An *Error matches the one of its Code with errors.Is;
// plan.ErrUnknownNode and plan.ErrInvalid are among them.
var (
	// ErrRefused matches every refusal. A request that is refused has changed nothing.
	ErrRefused = errors.New("refused by the manager")
	// ErrNoPlan: the manager has no plan yet.
	ErrNoPlan = rib.ErrNoPlan
	// ErrBadVID: a VID out of range, or not among the plan's.
	ErrBadVID = rib.ErrBadVID
	// ErrOneSided: a change of one direction of a pair, or of one of its ends.
	ErrOneSided = rib.ErrOneSided
	// ErrChanged: the plan in force is another one than the change was meant for.
	ErrChanged = errors.New("plan has changed")
	// ErrBusy: another change is prepared and not committed yet.
	ErrBusy = errors.New("another change is under way")
	// ErrLease: a commit of a change that is not prepared, or whose lease is over; or the
	// preparation of one that was aborted.
	ErrLease = errors.New("change is not prepared")
	// ErrNoHistory: there is no earlier plan.
	ErrNoHistory = errors.New("no plan to go back to")
	// ErrNoSession: the session has ended, or never began.
	ErrNoSession = errors.New("no such session")
	// ErrFull: the manager serves as many sessions as it can.
	ErrFull = errors.New("too many sessions")
	// ErrBadRequest: the request itself is malformed.
	ErrBadRequest = errors.New("bad request")
	// ErrTooLarge: the request has too many bytes.
	ErrTooLarge = errors.New("request is too large")
	// ErrForbidden: the request comes from a web page in a browser.
	ErrForbidden = errors.New("refused to browsers")
	// ErrTLSOnly: a request without TLS to an address that takes TLS alone. It is ErrProtocol.
	ErrTLSOnly = fmt.Errorf("%w: this address takes TLS alone", ErrProtocol)
	// ErrNotFound: the manager does not know the request; another version of it may.
	ErrNotFound = errors.New("no such request")
	// ErrClosed: the server or session was closed. It is net.ErrClosed.
	ErrClosed = fmt.Errorf("manager: closed: %w", net.ErrClosed)
)

// Sentinels of requests that no manager has answered.
var (
	// ErrUnreachable: the manager could not be asked, or its answer was lost.
	ErrUnreachable = errors.New("manager unreachable")
	// ErrProtocol: the answer is not a manager's, or that of another version.
	ErrProtocol = errors.New("not a manager of this protocol")
)

// Error is a manager's refusal, as its answers carry it: docs/manager-api.md lists the codes.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Version is that of the routes in force, where it matters.
	Version Version `json:"version,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is hold for ErrRefused and the sentinel of the code.
func (e *Error) Is(target error) bool {
	if target == ErrRefused {
		return true
	}
	i := slices.IndexFunc(codes, func(c code) bool { return c.name == e.Code })
	return i >= 0 && errors.Is(codes[i].sentinel, target)
}

// code is a class of refusals.
type code struct {
	name     string
	sentinel error
	status   int // of HTTP
}

// codes are in the order in which Refusal looks for an error among them.
var codes = []code{
	{"no_plan", ErrNoPlan, http.StatusConflict},
	{"unknown_node", plan.ErrUnknownNode, http.StatusUnprocessableEntity},
	{"bad_vid", ErrBadVID, http.StatusUnprocessableEntity},
	{"one_sided", ErrOneSided, http.StatusUnprocessableEntity},
	{"bad_plan", plan.ErrInvalid, http.StatusUnprocessableEntity},
	{"changed", ErrChanged, http.StatusPreconditionFailed},
	{"busy", ErrBusy, http.StatusConflict},
	{"lease", ErrLease, http.StatusConflict},
	{"too_large", ErrTooLarge, http.StatusRequestEntityTooLarge},
	{"bad_request", ErrBadRequest, http.StatusBadRequest},
	{"full", ErrFull, http.StatusServiceUnavailable},
	{"no_session", ErrNoSession, http.StatusGone},
	{"no_history", ErrNoHistory, http.StatusConflict},
	{"browser", ErrForbidden, http.StatusForbidden},
	{"tls", ErrTLSOnly, http.StatusBadRequest},
	{"not_found", ErrNotFound, http.StatusNotFound},
	{"closed", ErrClosed, http.StatusServiceUnavailable},
}

// Codes returns the names of all codes.
func Codes() []string {
	names := []string{codeInternal}
	for _, c := range codes {
		names = append(names, c.name)
	}
	return names
}

// codeInternal is the code of the manager's own faults.
const codeInternal = "internal"

// Refusal returns the answer that err makes, and its HTTP status. An error without a code is the
// manager's own fault: "internal".
func Refusal(err error) (e *Error, status int) {
	if !errors.As(err, &e) {
		e = &Error{Code: codeInternal, Message: err.Error()}
	}
	for _, c := range codes {
		if c.name == e.Code || errors.Is(err, c.sentinel) {
			e.Code = c.name
			return e, c.status
		}
	}
	return e, http.StatusInternalServerError
}

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrBadRequest}, args...)...)
}
