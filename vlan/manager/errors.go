package manager

import (
	"errors"
	"fmt"
	"net"
	"net/http"

	"github.com/rawlane/rawlane/vlan/manager/internal/claims"

	"github.com/rawlane/rawlane/vlan/plan"
)

// Sentinels: test with errors.Is. A manager's refusal is an *Error, and is those of its Code; vlan.ErrUnknownNode and
// plan.ErrInvalid are among them.
var (
	// ErrRefused: the manager has refused a request, which has changed nothing. Every *Error is.
	ErrRefused = errors.New("refused by the manager")
	// ErrNoPlan: the manager has no plan yet.
	ErrNoPlan = claims.ErrNoPlan
	// ErrBadVID: a VID out of range, or not among the plan's.
	ErrBadVID = claims.ErrBadVID
	// ErrOneSided: a change of one direction of a pair, or of one of its ends.
	ErrOneSided = claims.ErrOneSided
	// ErrChanged: the plan is not any more the one that the change was meant for.
	ErrChanged = errors.New("plan has changed")
	// ErrBusy: another change is prepared and not committed yet.
	ErrBusy = errors.New("another change is under way")
	// ErrLease: a change was committed that is not prepared, or not any more.
	ErrLease = errors.New("change is not prepared")
	// ErrProtocol: what answers speaks no protocol, or another version, of a manager's.
	ErrProtocol = errors.New("not a manager of this protocol")
	// ErrUnreachable: no manager could be asked.
	ErrUnreachable = errors.New("manager unreachable")
	// ErrCorrupt: the state file cannot be read.
	ErrCorrupt = errors.New("corrupt state file")
	// ErrClosed: the server or session was closed. Is net.ErrClosed.
	ErrClosed = fmt.Errorf("manager: closed: %w", net.ErrClosed)
)

// Error is a manager's refusal, as its answers carry it: docs/manager-api.md lists the codes.
type Error struct {
	Code    string `json:"code"`
	Message string `json:"message"`
	// Version is that of the table in force, if that matters.
	Version uint64 `json:"version,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is hold for ErrRefused and the sentinel of the code.
func (e *Error) Is(target error) bool {
	if target == ErrRefused {
		return true
	}
	i := codeIndex(func(c code) bool { return c.name == e.Code })
	return i >= 0 && codes[i].is == target
}

// code is a class of refusals.
type code struct {
	name   string
	is     error
	status int // of HTTP
}

// notFound is the code of requests that this manager does not know. Another one, of another version, may.
const notFound = "not_found"

var errBadRequest = errors.New("bad request")

// codes are in the order in which an error is looked for among them.
var codes = []code{
	{"no_plan", ErrNoPlan, http.StatusConflict},
	{"unknown_node", plan.ErrUnknownNode, http.StatusUnprocessableEntity},
	{"bad_vid", ErrBadVID, http.StatusUnprocessableEntity},
	{"one_sided", ErrOneSided, http.StatusUnprocessableEntity},
	{"bad_plan", plan.ErrInvalid, http.StatusUnprocessableEntity},
	{"changed", ErrChanged, http.StatusPreconditionFailed},
	{"busy", ErrBusy, http.StatusConflict},
	{"lease", ErrLease, http.StatusConflict},
	{"bad_request", errBadRequest, http.StatusBadRequest},
	{"too_large", errTooLarge, http.StatusRequestEntityTooLarge},
	{"full", errFull, http.StatusServiceUnavailable},
	{"protocol", ErrProtocol, http.StatusUpgradeRequired},
	{"no_history", errNoHistory, http.StatusConflict},
	{"closed", ErrClosed, http.StatusServiceUnavailable},
}

var (
	errTooLarge  = errors.New("request is too large")
	errFull      = errors.New("too many sessions")
	errNoHistory = errors.New("no plan to go back to")
)

func codeIndex(f func(code) bool) int {
	for i, c := range codes {
		if f(c) {
			return i
		}
	}
	return -1
}

// refusal makes the answer of an error. One that has no code is this machine's fault: "internal".
func refusal(err error) (e *Error, status int) {
	if errors.As(err, &e) {
		i := codeIndex(func(c code) bool { return c.name == e.Code })
		if i >= 0 {
			return e, codes[i].status
		}
	}
	if i := codeIndex(func(c code) bool { return errors.Is(err, c.is) }); i >= 0 {
		return &Error{Code: codes[i].name, Message: err.Error()}, codes[i].status
	}
	return &Error{Code: "internal", Message: err.Error()}, http.StatusInternalServerError
}

func badRequest(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{errBadRequest}, args...)...)
}

// unreachable makes an error ErrUnreachable, if it is not one already.
func unreachable(err error) error {
	if errors.Is(err, ErrUnreachable) {
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnreachable, err)
}
