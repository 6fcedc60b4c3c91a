package barrier

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/rawlane/rawlane/barrier/internal/engine"
	"github.com/rawlane/rawlane/barrier/schedule"
	"github.com/rawlane/rawlane/internal/clock"
	"github.com/rawlane/rawlane/internal/monotime"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
)

// DefaultPort of barriers.
const DefaultPort mcd.PortID = 254

// Config of a service. The zero value works.
type Config struct {
	// Port of barriers, the same on every node. Zero is DefaultPort.
	Port mcd.PortID
	// Detours are tags by which a member that does not answer by its route is asked, too, before it
	// counts as down. The tags by which other members are reached are always among them.
	Detours []transport.OptionalTag
	// Table has the algorithms of groups whose config names none, as rawlane tune measures them
	// (ReadTable). What it does not have, and all if it is nil, is chosen by the model. All nodes
	// give the same: members that have chosen differently are a *MismatchError.
	Table *schedule.Table
	// Logger of late barriers. Nil is slog.Default. Service.Close waits until it returns: it must
	// not call that.
	Logger *slog.Logger
	// Unit, on the Center of groups whose algorithm is schedule.Offload, counts their arrivals in
	// the path of the NIC. See package offload. Nil is none: the Center's process counts.
	Unit Unit
}

// Service has the barriers of one endpoint. Its groups share a port, a lock and a timer. All
// methods may be called from any goroutine.
type Service struct {
	ep   *mcd.Endpoint
	cfg  Config
	port *mcd.Port

	leaving sync.WaitGroup // calls that say goodbye
	logging sync.WaitGroup // calls of the logger; none is added once the service is closed
	unwatch func()         // ends watchProbe

	making     sync.Mutex // held while a member set is made; taken before mu
	mu         sync.Mutex // guards what follows and all engines; taken inside the endpoint's poll lock
	closed     bool
	groups     []*Group
	sets       map[engine.Identity]*memberSet
	last       *memberSet        // the one that the last message was for, and most likely the next one
	made       map[uint64]uint32 // the last epoch, by hash of a group's number and members
	tombstones []*memberSet      // of the groups that were closed last
	early      []earlyMessage    // of groups that do not exist here yet
	consented  []consent         // likewise

	detour  int            // counts probes
	awaited []*condition   // of goroutines that wait for answers
	late    [][]any        // the attributes of entries to be logged
	message engine.Message // the one being handled
	out     []engine.Send
	buf     []byte
	timer   *time.Timer
	timerAt monotime.Time // when it fires; zero: not set
	armed   []*memberSet  // those for which something may be due
	spare   []*memberSet  // their memory the next time
}

// Open starts the barriers of an endpoint: one service per port. It sends nothing.
//
// Errors: ErrUnit; mcd.ErrPortBusy, mcd.ErrClosed.
func Open(ep *mcd.Endpoint, cfg Config) (*Service, error) {
	cfg.Port = cmp.Or(cfg.Port, DefaultPort)
	cfg.Logger = cmp.Or(cfg.Logger, slog.Default())
	if cfg.Unit != nil {
		if err := checkUnit(ep, cfg.Unit); err != nil {
			return nil, err
		}
	}
	s := &Service{
		ep: ep, cfg: cfg, sets: map[engine.Identity]*memberSet{}, made: map[uint64]uint32{},
		buf: make([]byte, 0, engine.MaxLen),
	}
	s.timer = time.AfterFunc(time.Hour, s.tick)
	s.timer.Stop() // arm sets it
	s.mu.Lock()    // a message may come before the port is known
	defer s.mu.Unlock()
	var err error
	if s.port, err = ep.OpenPort(cfg.Port, mcd.PortOptions{Receive: s.receive}); err != nil {
		return nil, fmt.Errorf("barrier: %w", err)
	}
	s.unwatch = ep.WatchProbes(s.watchProbe)
	return s, nil
}

// Close closes all groups, as Group.Close does, and the port, and waits for Config.Logger, if that
// is told of a late barrier just then. Further calls do nothing else than to wait for the goodbyes
// and the logger.
func (s *Service) Close() (err error) {
	s.mu.Lock()
	first := !s.closed
	s.closed = true
	groups := slices.Clone(s.groups)
	s.mu.Unlock()
	defer func() { // also if another port's function does not return to the wait
		s.leaving.Wait() // for groups that are closed at the same time
		if first {
			s.timer.Stop()
			s.unwatch()
			err = s.port.Close()
		}
		s.logging.Wait()
	}()
	s.leave(groups...)
	return nil
}

// receive handles messages, in whichever goroutine polls. Malformed ones are dropped.
func (s *Service) receive(batch []mcd.Message, _ bool) {
	if len(batch) == 0 {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := clock.Now()
	for i := range batch {
		if m := &batch[i]; engine.Parse(m.Payload, &s.message) == nil {
			s.message.NIC = m.NIC
			s.handle(now, m.From.Node, &s.message)
		}
	}
	if len(s.awaited) > 0 {
		s.checkAwaited()
	}
}

func (s *Service) handle(now monotime.Time, from mcd.NodeID, m *engine.Message) {
	c := s.last
	if c == nil || c.identity != m.Identity {
		c = s.sets[m.Identity]
		s.last = c
	}
	if c != nil {
		c.handle(now, from, m)
	} else {
		s.handleUnknown(now, from, m)
	}
}

// post sends s.buf. If the link has no room the message waits, in a copy; if it cannot be posted
// either, it is lost as frames are, and a nack brings it back. The caller holds mu.
func (s *Service) post(nic int, to mcd.Dest) {
	if err := s.port.TrySend(nic, to, s.buf); errors.Is(err, transport.ErrBusy) {
		_ = s.port.PostSend(&mcd.SendDesc{To: to, Payload: slices.Clone(s.buf), NIC: nic})
	}
}

// arm sets the timer for c's deadline, unless it fires before. A quick barrier leaves the timer
// as it is, so that it is set once for many of them. The caller holds mu.
func (s *Service) arm(c *memberSet) {
	at, ok := c.engine.Deadline()
	if ok && !c.armed {
		c.armed = true
		s.armed = append(s.armed, c)
	}
	if ok && (s.timerAt.IsZero() || at.Before(s.timerAt)) {
		s.timerAt = at
		s.timer.Reset(at.Sub(clock.Now()))
	}
}

// tick does what is due, in a goroutine of the timer.
func (s *Service) tick() {
	late := s.advance(clock.Now())
	if len(late) == 0 {
		return
	}
	defer s.logging.Done()
	for _, attributes := range late {
		s.cfg.Logger.Warn("barrier is late", attributes...)
	}
}

// advance advances the engines for which something is due. It returns what is to be logged without
// mu: a logger takes its time, and may call the service. If that is anything, the call is counted
// among those of the logger.
func (s *Service) advance(now monotime.Time) [][]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.timerAt = monotime.Time{}
	all := s.armed
	s.armed, s.spare = s.spare[:0], all
	for k, c := range all {
		all[k], c.armed = nil, false
		if s.sets[c.identity] == c { // it was not closed
			c.advance(now)
			s.arm(c)
		}
	}
	late := s.late
	s.late = nil
	if s.closed {
		return nil
	}
	if len(late) > 0 {
		s.logging.Add(1)
	}
	return late
}
