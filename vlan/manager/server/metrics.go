package server

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/vlan/manager/api"
	"github.com/rawlane/rawlane/vlan/manager/internal/rib"
)

// Prometheus' text format, version 0.0.4, takes 40 lines; its client library would bring a dozen
// modules to every program with a manager.

// exposition is a text in that format.
type exposition struct {
	strings.Builder
	name string // of the metric that samples belong to
}

// metric begins a metric: a counter if its name ends with _total, else a gauge.
func (e *exposition) metric(name, help string) {
	kind := "gauge"
	if strings.HasSuffix(name, "_total") {
		kind = "counter"
	}
	fmt.Fprintf(e, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
	e.name = name
}

// sample adds a value, with labels as names and values in turn.
func (e *exposition) sample(value float64, labels ...string) {
	e.WriteString(e.name)
	for i := 0; i < len(labels); i += 2 {
		separator := ","
		if i == 0 {
			separator = "{"
		}
		fmt.Fprintf(e, "%s%s=\"%s\"", separator, labels[i], escapeLabel.Replace(labels[i+1]))
	}
	if len(labels) > 0 {
		e.WriteByte('}')
	}
	fmt.Fprintf(e, " %v\n", value)
}

var escapeLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)

// single adds a metric of one sample.
func (e *exposition) single(name, help string, value float64, labels ...string) {
	e.metric(name, help)
	e.sample(value, labels...)
}

// byLabel adds a metric with a sample for each value of a label.
func (e *exposition) byLabel(name, help, label string, values map[string]uint64) {
	e.metric(name, help)
	for _, k := range slices.Sorted(maps.Keys(values)) {
		e.sample(float64(values[k]), label, k)
	}
}

// getMetrics answers a scraper. The counters by destination are left out unless it asks for them,
// by /metrics?routes=all: they are a series for each pair of a cluster, twice.
func (s *Server) getMetrics(w http.ResponseWriter, r *http.Request) {
	release, err := s.admit(r)
	if err != nil {
		s.refuse(w, r, fmt.Errorf("metrics: read: %w", err))
		return
	}
	defer release()
	counters := s.recentCounters(r.Context())
	nic, nicErr := nicOf(s.cfg.Interface, s.cfg.MAC)
	var e exposition
	s.writeState(&e)
	s.writePaths(&e)
	e.metric("rawlane_vid_frames_total",
		"Frames sent by this node's programs since they began, by VID; 0: untagged.")
	for _, c := range counters.VIDs {
		e.sample(float64(c.Frames), "vid", fmt.Sprint(c.VID))
	}
	e.metric("rawlane_vid_bytes_total",
		"Bytes sent by this node's programs since they began, by VID; 0: untagged.")
	for _, c := range counters.VIDs {
		e.sample(float64(c.Bytes), "vid", fmt.Sprint(c.VID))
	}
	if wantsRoutes(r) {
		writeRoutes(&e, counters.Nodes)
	}
	e.single("rawlane_sessions_silent", "Programs that did not report their counters in time.",
		float64(counters.Silent))
	if s.cfg.Interface != "" {
		e.single("rawlane_nic_up", "Whether the network interface is up and has a carrier.",
			truth(nicErr == nil && nic.Up && nic.Carrier), "interface", s.cfg.Interface)
		e.single("rawlane_nic_speed_bits_per_second", "The network interface's speed; 0 if its driver does not tell.",
			float64(nic.SpeedMbps)*1e6, "interface", s.cfg.Interface)
	}
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	_, _ = io.WriteString(w, e.String()) // the client may be gone, which changes nothing here
}

// wantsRoutes reports whether a scraper asks for the counters by destination.
func wantsRoutes(r *http.Request) bool { return r.URL.Query().Get("routes") == "all" }

// writeRoutes tells what was sent to each destination.
func writeRoutes(e *exposition, sent []api.Sent) {
	e.metric("rawlane_route_frames_total",
		"Frames sent by this node's programs since they began, by destination and VID.")
	for _, c := range sent {
		e.sample(float64(c.Frames), "dst", c.Dst.String(), "node", c.Name, "vid", fmt.Sprint(c.VID))
	}
	e.metric("rawlane_route_bytes_total",
		"Bytes sent by this node's programs since they began, by destination and VID.")
	for _, c := range sent {
		e.sample(float64(c.Bytes), "dst", c.Dst.String(), "node", c.Name, "vid", fmt.Sprint(c.VID))
	}
}

// maxPathSamples bounds the series of rawlane_path_up: a failover of 4,096 nodes and 64 VIDs has
// 260,000 paths. Of more paths than the bound those that are down are told, the first of them.
const maxPathSamples = 1024

// writePaths tells of the failover.
func (s *Server) writePaths(e *exposition) {
	s.looking.Lock() // as for health
	defer s.looking.Unlock()
	f, _ := s.paths()
	e.single("rawlane_failover_watching", "Whether a failover watches the plan's paths.", truth(f.Watching))
	e.single("rawlane_paths_watched", "Paths that the failover watches.", float64(len(f.Paths)))
	e.metric("rawlane_path_up",
		"Whether the path to a node by a VID carries frames; of over 1024 paths those alone that do not.")
	shown := 0
	for _, p := range f.Paths {
		isUp := p.State != api.PathDown
		if isUp && len(f.Paths) > maxPathSamples || shown == maxPathSamples {
			continue
		}
		e.sample(truth(isUp), "peer", p.Peer.String(), "node", p.Name, "vid", fmt.Sprint(p.VID))
		shown++
	}
	byDefault, _ := s.VIDs(transport.Broadcast)
	sum := summaryOf(f.Paths, byDefault)
	e.single("rawlane_paths_down", "Watched paths that carry no frames.", float64(sum.down))
	e.single("rawlane_nodes_unreachable", "Nodes to which all watched paths are down.", float64(len(sum.unreachable)))
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// isOfDefault reports whether an override is of the default route, and of no pair.
func isOfDefault(c rib.Candidate) bool { return c.B == transport.Broadcast }

// writeState tells of the manager itself.
func (s *Server) writeState(e *exposition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e.single("rawlane_manager_info", "The manager's program and the node's address.",
		1, "program", s.cfg.Program, "mac", s.cfg.MAC.String())
	e.single("rawlane_manager_start_time_seconds", "When the manager started, in seconds since 1970.",
		float64(s.started.UnixMilli())/1e3)
	e.single("rawlane_table_version", "The version of the routes in force.", float64(s.version))
	e.single("rawlane_plan_info",
		"The plan in force, by its id: the same on all nodes that have one plan; empty without one.", 1, "id", s.planID)
	e.single("rawlane_routes", "Routes in force.", float64(len(s.rib.Routes())))
	e.single("rawlane_pairs_overridden", "Pairs that a failover keeps off their path.",
		float64(len(slices.DeleteFunc(s.rib.Of(rib.Failover), isOfDefault))))
	e.single("rawlane_sessions", "Programs that are told of changes.", float64(len(s.sessions.all)))
	e.single("rawlane_manager_requests_total", "Requests over HTTP.", float64(s.requests))
	e.byLabel("rawlane_manager_changes_total", "Changes of the routes, by what made them.", "act", s.made)
	e.byLabel("rawlane_manager_refused_total", "Requests that were refused, by code.", "code", s.refused)
	e.single("rawlane_manager_handshakes_failed_total", "TLS handshakes that have failed.",
		float64(s.handshakesFailed))
	e.single("rawlane_change_prepared", "Whether a change of several nodes waits for its commit.",
		truth(s.announced != nil))
	e.single("rawlane_leases_expired_total", "Prepared changes that were not committed in time.",
		float64(s.leasesExpired))
	e.single("rawlane_state_writes_failed_total",
		"Writes of the state file that have failed.", float64(s.writesFailed))
	latest, ok := s.changes.latest()
	if !ok {
		latest = s.started
	}
	e.single("rawlane_table_change_time_seconds", "When the routes changed last, in seconds since 1970.",
		float64(latest.UnixMilli())/1e3)
}
