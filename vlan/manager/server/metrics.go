package server

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

// Prometheus' text format, version 0.0.4, takes 40 lines; its client library would bring a dozen
// modules to every program with a manager.

// exposition is a text in that format.
type exposition struct{ text strings.Builder }

// metric begins a metric of a kind, gauge or counter.
func (e *exposition) metric(name, kind, help string) {
	fmt.Fprintf(&e.text, "# HELP %s %s\n# TYPE %s %s\n", name, escapeHelp.Replace(help), name, kind)
}

// sample adds a value, with labels as names and values in turn.
func (e *exposition) sample(name string, value float64, labels ...string) {
	e.text.WriteString(name)
	for i := 0; i < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(&e.text, "%s%s=\"%s\"", separator, labels[i], escapeLabel.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		e.text.WriteByte('}')
	}
	fmt.Fprintf(&e.text, " %v\n", value)
}

var (
	escapeHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) {
	counters := s.Counters(r.Context())
	nic, nicErr := nicOf(s.cfg.Interface, s.cfg.MAC)
	var e exposition
	s.writeState(&e)
	e.metric("rawlane_route_frames_total", "counter", "Frames sent by this node's programs, by destination and VID.")
	for _, c := range counters.Nodes {
		e.sample("rawlane_route_frames_total", float64(c.Frames),
			"dst", c.Dst.String(), "node", c.Name, "vid", fmt.Sprint(c.VID))
	}
	e.metric("rawlane_route_bytes_total", "counter", "Bytes sent by this node's programs, by destination and VID.")
	for _, c := range counters.Nodes {
		e.sample("rawlane_route_bytes_total", float64(c.Bytes),
			"dst", c.Dst.String(), "node", c.Name, "vid", fmt.Sprint(c.VID))
	}
	e.metric("rawlane_sessions_silent", "gauge", "Programs that did not report their counters in time.")
	e.sample("rawlane_sessions_silent", float64(counters.Silent))
	if s.cfg.Interface != "" {
		e.metric("rawlane_nic_up", "gauge", "Whether the network interface is up and has a carrier.")
		e.sample("rawlane_nic_up", flag(nicErr == nil && nic.Up && nic.Carrier), "interface", s.cfg.Interface)
		e.metric("rawlane_nic_speed_bits_per_second", "gauge",
			"The network interface's speed; 0 if its driver does not tell.")
		e.sample("rawlane_nic_speed_bits_per_second", float64(nic.SpeedMbps)*1e6, "interface", s.cfg.Interface)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = w.Write([]byte(e.text.String())) // the client may be gone, which changes nothing here
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// writeState tells of the manager itself.
func (s *Server) writeState(e *exposition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.metric("rawlane_manager_info", "gauge", "The manager's program and the node's address.")
	e.sample("rawlane_manager_info", 1, "program", s.cfg.Program, "mac", s.cfg.MAC.String())
	e.metric("rawlane_manager_start_time_seconds", "gauge", "When the manager started, in seconds since 1970.")
	e.sample("rawlane_manager_start_time_seconds", float64(s.started.UnixMilli())/1e3)
	e.metric("rawlane_table_version", "gauge", "The version of the routes in force.")
	e.sample("rawlane_table_version", float64(s.version))
	e.metric("rawlane_plan_info", "gauge",
		"The plan in force, by its id: the same on all nodes that have one plan; empty without one.")
	e.sample("rawlane_plan_info", 1, "id", s.planID)
	e.metric("rawlane_routes", "gauge", "Routes in force.")
	e.sample("rawlane_routes", float64(len(s.rib.Routes())))
	e.metric("rawlane_pairs_overridden", "gauge", "Pairs that a failover keeps off their path.")
	e.sample("rawlane_pairs_overridden", float64(len(s.rib.Of(rib.Failover))))
	e.metric("rawlane_sessions", "gauge", "Programs that are told of changes.")
	e.sample("rawlane_sessions", float64(len(s.sessions.all)))
	e.metric("rawlane_manager_requests_total", "counter", "Requests over HTTP.")
	e.sample("rawlane_manager_requests_total", float64(s.counted.requests))
	e.metric("rawlane_manager_changes_total", "counter", "Changes of the routes, by what made them.")
	samples(e, "rawlane_manager_changes_total", "act", s.counted.changes)
	e.metric("rawlane_manager_refused_total", "counter", "Requests that were refused, by code.")
	samples(e, "rawlane_manager_refused_total", "code", s.counted.refused)
	e.metric("rawlane_table_age_seconds", "gauge", "Time since the routes changed last.")
	age := time.Since(s.started)
	if list := s.changes.list(); len(list) > 0 {
		age = time.Since(list[len(list)-1].Time)
	}
	e.sample("rawlane_table_age_seconds", age.Seconds())
}

func samples(e *exposition, name, label string, values map[string]uint64) {
	for _, k := range slices.SortedFunc(maps.Keys(values), cmp.Compare[string]) {
		e.sample(name, float64(values[k]), label, k)
	}
}
