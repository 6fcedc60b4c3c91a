// Package explore visits every state that a few protocol cores can reach, in any order of events.
// It is for tests: a simulation tries some histories of large clusters, a search all of small ones.
//
//	r := explore.All(func() explore.World { return newWorld() }, 1_000_000)
//	if r.Wrong != "" { t.Errorf("%s after %v", r.Wrong, r.History) }
//
// A world is made anew for each history, and its moves are done again: cores need not be copied.
package explore

import (
	"hash/maphash"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/internal/monotime"
)

// Move is an event: what happens, and to which two members.
type Move struct {
	Kind     string
	From, To int
}

// World is cores, and the frames between them.
type World interface {
	Moves() []Move // the events that may come next; none: the history has ended
	Do(Move)
	Wrong() string // the first broken promise, or ""
	End() string   // what is wrong with a world in which the history has ended, or ""
	// State returns what the future depends on, and the present instant. Its digest tells states
	// apart; see Digest.
	State() (state any, now monotime.Time)
}

// Result of a search.
type Result struct {
	States, Ends int
	Cut          bool   // there are more states than the limit
	Wrong        string // the first broken promise, or ""
	History      []Move // that leads to it
}

// All visits all states, but at most limit of them, and stops at a broken promise.
func All(start func() World, limit int) Result {
	s := &search{start: start, limit: limit, seen: map[uint64]struct{}{}, seed: maphash.MakeSeed()}
	s.visit(start(), nil)
	s.States = len(s.seen)
	return s.Result
}

type search struct {
	Result
	start func() World
	limit int
	seen  map[uint64]struct{}
	seed  maphash.Seed
}

// visit goes on from a world by all of its moves: by the first in the world itself, by the others
// in replays.
func (s *search) visit(w World, history []Move) {
	for s.goesOn(w, history) {
		moves := w.Moves()
		if len(moves) == 0 {
			s.Ends++
			s.note(w.End(), history)
			return
		}
		for _, m := range moves[1:] {
			next := s.start()
			for _, before := range history {
				next.Do(before)
			}
			next.Do(m)
			if s.visit(next, append(slices.Clip(history), m)); s.Wrong != "" {
				return
			}
		}
		w.Do(moves[0])
		history = append(slices.Clip(history), moves[0])
	}
}

// goesOn notes a state. It returns false if nothing new follows.
func (s *search) goesOn(w World, history []Move) bool {
	if s.note(w.Wrong(), history); s.Wrong != "" {
		return false
	}
	state, now := w.State()
	key := Digest(s.seed, state, now)
	if _, was := s.seen[key]; was {
		return false
	}
	if s.Cut = s.Cut || len(s.seen) >= s.limit; s.Cut {
		return false
	}
	s.seen[key] = struct{}{}
	return true
}

func (s *search) note(wrong string, history []Move) {
	if s.Wrong == "" && wrong != "" {
		s.Wrong, s.History = wrong, history
	}
}

// Digest returns a hash of all that a value holds. Instants count from now. Functions do not count,
// nor do fields with the tag `explore:"-"` or, as cores know nothing of this package, those that
// stand in Ignored, by name or by type and name.
func Digest(seed maphash.Seed, v any, now monotime.Time) uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	add(&h, reflect.ValueOf(v), now)
	return h.Sum64()
}

// Ignored are names of fields that only users are told of, or that are the same in all states.
const Ignored = " stats at done entered begun Algorithm plan cfg Counters control batch " +
	"machine.left Engine.last "

var instant = reflect.TypeFor[monotime.Time]()

func add(h *maphash.Hash, v reflect.Value, now monotime.Time) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if maphash.WriteComparable(h, v.IsNil()); !v.IsNil() {
			add(h, v.Elem(), now)
		}
	case reflect.Struct:
		addStruct(h, v, now)
	case reflect.Slice, reflect.Array:
		maphash.WriteComparable(h, v.Len())
		if v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Uint8 {
			_, _ = h.Write(v.Bytes())
			return
		}
		for i := range v.Len() {
			add(h, v.Index(i), now)
		}
	case reflect.Bool:
		maphash.WriteComparable(h, v.Bool())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		maphash.WriteComparable(h, v.Int())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		maphash.WriteComparable(h, v.Uint())
	case reflect.Float64:
		maphash.WriteComparable(h, v.Float())
	case reflect.String:
		maphash.WriteComparable(h, v.String())
	case reflect.Func:
	default:
		panic("explore: a value of kind " + v.Kind().String())
	}
}

func addStruct(h *maphash.Hash, v reflect.Value, now monotime.Time) {
	if v.Type() == instant {
		since := time.Duration(v.Field(0).Int())
		if maphash.WriteComparable(h, since == 0); since != 0 { // the zero instant is never, and not now
			maphash.WriteComparable(h, since-now.Since())
		}
		return
	}
	for i := range v.NumField() {
		f := v.Type().Field(i)
		ignored := strings.Contains(Ignored, " "+f.Name+" ") ||
			strings.Contains(Ignored, " "+v.Type().Name()+"."+f.Name+" ")
		if f.Tag.Get("explore") != "-" && !ignored {
			add(h, v.Field(i), now)
		}
	}
}
