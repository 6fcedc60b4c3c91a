package start

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start/internal/pmi/pmitest"
	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/mcd/keyring"
	"github.com/rawlane/rawlane/transport"
)

// environ is an environment.
type environ map[string]string

func (e environ) get(name string) string { return e[name] }

// The launchers' variables, as they set them.
func TestFindJob(t *testing.T) {
	for name, c := range map[string]struct {
		env  environ
		want Job
	}{
		"nobody":           {environ{}, Job{}},
		"a batch script":   {environ{"SLURM_PROCID": "0", "SLURM_NTASKS": "2"}, Job{}},
		"rawlane run":      {environ{EnvNode: "1", EnvNodes: "3"}, Job{Launcher: RawlaneRun, Node: 1, Size: 3}},
		"ours comes first": {environ{EnvNode: "1", EnvNodes: "3", "SLURM_STEP_NUM_TASKS": "8", "SLURM_PROCID": "5"}, Job{Launcher: RawlaneRun, Node: 1, Size: 3}},
		"Open MPI": {
			environ{"OMPI_COMM_WORLD_RANK": "1", "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_SIZE": "2", "OMPI_MCA_ess_base_jobid": "77", "SLURM_PROCID": "0"},
			Job{Launcher: OpenMPI, Name: "77", Node: 1, Size: 4, Local: 2},
		},
		"Open MPI, within a step of Slurm by PMI": {
			environ{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "PMIX_NAMESPACE": "x", "PMI_FD": "77", "SLURM_STEP_NUM_TASKS": "1"},
			Job{Launcher: OpenMPI, Name: "x", Node: 0, Size: 2},
		},
		"Slurm, named by the user": {
			environ{"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_JOB_ID": "9", "SLURM_STEP_ID": "0", EnvJob: "mine"},
			Job{Launcher: Slurm, Name: "mine", Node: 3, Size: 4},
		},
		"Slurm, one host": {
			environ{"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_STEP_NUM_NODES": "1", "SLURM_JOB_ID": "9", "SLURM_STEP_ID": "0"},
			Job{Launcher: Slurm, Name: "9.0", Node: 3, Size: 4, Local: 4},
		},
		"Slurm, a host each": {
			environ{"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_STEP_NUM_NODES": "4", "SLURM_JOB_ID": "9", "SLURM_STEP_ID": "1"},
			Job{Launcher: Slurm, Name: "9.1", Node: 3, Size: 4, Local: 1},
		},
		"Slurm, of a cluster that has a name": {
			environ{"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "3", "SLURM_JOB_ID": "9", "SLURM_STEP_ID": "1", "SLURM_CLUSTER_NAME": "rack"},
			Job{Launcher: Slurm, Name: "rack/9.1", Node: 3, Size: 4},
		},
		"Slurm, two hosts": {
			environ{"SLURM_STEP_NUM_TASKS": "4", "SLURM_PROCID": "0", "SLURM_STEP_NUM_NODES": "2", "SLURM_JOB_ID": "9", "SLURM_STEP_ID": "1"},
			Job{Launcher: Slurm, Name: "9.1", Node: 0, Size: 4},
		},
		"Slurm's shell of salloc":  {environ{"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0", "SLURM_JOB_ID": "9", "SLURM_STEP_ID": "4294967290"}, Job{}},
		"Slurm's step of a script": {environ{"SLURM_STEP_NUM_TASKS": "1", "SLURM_PROCID": "0", "SLURM_JOB_ID": "9", "SLURM_STEP_ID": "4294967291"}, Job{}},
		"Kubernetes":               {environ{"JOB_COMPLETION_INDEX": "2", EnvNodes: "3", EnvJob: "a"}, Job{Launcher: Kubernetes, Name: "a", Node: 2, Size: 3, Local: 1}},
	} {
		if j, err := findJob(t.Context(), c.env.get); err != nil || j != c.want {
			t.Errorf("%s: %+v, %v; want %+v", name, j, err, c.want)
		}
	}
	for name, env := range map[string]environ{
		"no size":          {EnvNode: "1"},
		"no number":        {EnvNode: "x", EnvNodes: "2"},
		"how many alone":   {EnvNodes: "4", EnvJob: "j"},
		"beyond the size":  {EnvNode: "2", EnvNodes: "2"},
		"negative":         {"OMPI_COMM_WORLD_RANK": "-1", "OMPI_COMM_WORLD_SIZE": "2"},
		"no local size":    {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "2(x2)"},
		"more on a host":   {"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "3"},
		"too many":         {EnvNode: "0", EnvNodes: "65536"},
		"pods of how many": {"JOB_COMPLETION_INDEX": "0"},
		"PMI of how many":  {"PMI_FD": "99", "PMI_RANK": "0"},
		"PMI of too many":  {"PMI_FD": "99", "PMI_RANK": "0", "PMI_SIZE": "65536"},
		"PMI by a path":    {"PMI_FD": "/tmp/socket", "PMI_RANK": "0", "PMI_SIZE": "2"},
	} {
		if j, err := findJob(t.Context(), env.get); !errors.Is(err, ErrEnvironment) || !strings.Contains(err.Error(), "number") && !strings.Contains(err.Error(), "RAWLANE_NODE from 0 on") {
			t.Errorf("%s: %+v, %v", name, j, err)
		}
	}
}

// A pod that has its machine's name does not know its Job's.
func TestFindJob_PodWithoutAName(t *testing.T) {
	env := environ{"JOB_COMPLETION_INDEX": "2", EnvNodes: "3"}
	if host, _ := os.Hostname(); strings.HasSuffix(host, "-2") {
		t.Skip("this host's name is one of a pod")
	}
	if j, err := findJob(t.Context(), env.get); !errors.Is(err, ErrEnvironment) || !strings.Contains(err.Error(), "set RAWLANE_JOB") {
		t.Errorf("%+v, %v", j, err)
	}
}

// Jobs of one name in two namespaces are two; a pod that is told of none has the name alone.
func TestPodJob(t *testing.T) {
	told := namespaceFile
	t.Cleanup(func() { namespaceFile = told })
	for namespace, want := range map[string]string{"blue": "blue/solve-2", "green\n": "green/solve-2", "": "solve-2"} {
		namespaceFile = filepath.Join(t.TempDir(), "namespace")
		if namespace != "" {
			if err := os.WriteFile(namespaceFile, []byte(namespace), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if got := podJob("solve-2-13", "13"); got != want {
			t.Errorf("%q: %q, want %q", namespace, got, want)
		}
	}
	if got := podJob("machine-7", "13"); got != "" {
		t.Errorf("a machine's name: %q", got)
	}
}

// Two jobs are two clusters, also with one name at two launchers; a job without a name is cluster 0.
func TestJob_Cluster(t *testing.T) {
	seen := map[mcd.ClusterID]Job{}
	for _, j := range []Job{{}, {Launcher: PMI, Name: "1.0"}, {Launcher: Slurm, Name: "1.0"}, {Launcher: Slurm, Name: "1.1"}} {
		if other, ok := seen[j.cluster()]; ok || j.Name == "" && j.cluster() != 0 {
			t.Errorf("%+v is cluster %d, as %+v", j, j.cluster(), other)
		}
		seen[j.cluster()] = j
	}
}

// What cannot work is refused, with what to do.
func TestOpenLink_Refuses(t *testing.T) {
	for name, c := range map[string]struct {
		job  Job
		env  environ
		want string
	}{
		"some share a host, and nobody tells":  {Job{Launcher: OpenMPI, Name: "x", Size: 4, Local: 2}, environ{}, "want one process to a host"},
		"a ring for two":                       {Job{Launcher: OpenMPI, Name: "x", Size: 2, Local: 2}, environ{EnvLink: "ring"}, "RAWLANE_LINK=ring: the 2 processes share this host's interface (leave RAWLANE_LINK unset, or shm)"},
		"a segment that is none, for one each": {Job{Launcher: Slurm, Name: "x", Size: 2, Local: 1}, environ{EnvLink: "udp", EnvInterfaces: "lo", EnvSegment: "a/b"}, "a/b"},
		"memory for two hosts":                 {Job{Launcher: OpenMPI, Name: "x", Size: 4, Local: 2}, environ{EnvLink: "shm"}, "not all of the 4 processes are on this host"},
		"a job without a name":                 {Job{Launcher: OpenMPI, Size: 2, Local: 2}, environ{}, "gives the job no name (set RAWLANE_JOB"},
		"a link that is none, for two":         {Job{Launcher: OpenMPI, Name: "x", Size: 2, Local: 2}, environ{EnvLink: "token"}, "want ring, packet, xdp, udp or shm"},
		"a link that is none":                  {Job{Launcher: RawlaneRun, Size: 2}, environ{EnvLink: "token", EnvInterfaces: "lo"}, "want ring, packet, xdp, udp or shm"},
		"memory, and nowhere to meet":          {Job{Launcher: RawlaneRun, Size: 2}, environ{EnvLink: "shm"}, "RAWLANE_LINK=shm, and no RAWLANE_SEGMENT says where the nodes meet"},
		"memory for too many":                  {Job{Launcher: RawlaneRun, Size: 450}, environ{EnvLink: "shm", EnvSegment: "x"}, "through shared memory 449 meet at most"},
		"one host for too many":                {Job{Launcher: OpenMPI, Name: "x", Size: 450, Local: 450}, environ{}, "through shared memory 449 meet at most"},
		"an address, and none of the others":   {Job{Launcher: RawlaneRun, Size: 2}, environ{EnvLink: "udp", EnvListen: "127.0.0.1"}, "RAWLANE_LISTEN=127.0.0.1, and no RAWLANE_SEEDS says where the others listen"},
		"an interface that is none":            {Job{Launcher: RawlaneRun, Size: 2}, environ{EnvLink: "packet", EnvInterfaces: "nowhere0"}, "nowhere0"},
	} {
		link, err := c.job.openLink(t.Context(), 1, c.env.get)
		if err == nil {
			_ = link.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

// A program that is alone has no link, and is told nevertheless of one that is none.
func TestRun_AloneRefusesALinkThatIsNone(t *testing.T) {
	t.Setenv(EnvLink, "token")
	err := Run(t.Context(), Config{Nodes: 2}, func(context.Context, *Node) error { return nil })
	if !errors.Is(err, ErrEnvironment) || !strings.Contains(err.Error(), "want ring, packet, xdp, udp or shm") {
		t.Errorf("%v", err)
	}
}

// The key file is the environment's, else the host file's; with neither there is none.
func TestKeyFile(t *testing.T) {
	dir := t.TempDir()
	hosts := filepath.Join(dir, "hosts")
	if err := os.WriteFile(hosts, []byte("0 a\nkey-file key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ key, hosts, want string }{
		{"", "", ""},
		{"/x", "", "/x"},
		{"/x", hosts, "/x"},
		{"", hosts, filepath.Join(dir, "key")},
	} {
		env := environ{EnvKeyFile: c.key, EnvHostfile: c.hosts}
		if got, err := keyFile(env.get); got != c.want || err != nil {
			t.Errorf("key %q, host file %q: %q, %v; want %q", c.key, c.hosts, got, err, c.want)
		}
	}
	env := environ{EnvHostfile: filepath.Join(dir, "nowhere")}
	if _, err := keyFile(env.get); err == nil {
		t.Error("a host file that does not exist is taken")
	}
	if err := keyring.New().WriteFile(filepath.Join(dir, "key")); err != nil {
		t.Fatal(err)
	}
	alone(t)
	t.Setenv(EnvHostfile, hosts)
	err := Run(t.Context(), Config{Nodes: 2}, func(_ context.Context, n *Node) error {
		if n.HeaderLen() != mcd.AuthHeaderLen {
			return fmt.Errorf("headers of %d bytes (want %d): the keys are not used", n.HeaderLen(), mcd.AuthHeaderLen)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// alone clears what a launcher of the tests may have set.
func alone(t *testing.T) {
	t.Helper()
	for _, name := range []string{EnvNode, "PMI_FD", "PMI_PORT", "OMPI_COMM_WORLD_RANK", "SLURM_STEP_NUM_TASKS", "JOB_COMPLETION_INDEX"} {
		t.Setenv(name, "")
	}
}

// Where nobody has started the process, all nodes are in it, know each other, and pass data.
func TestRun_AllInThisProcess(t *testing.T) {
	alone(t)
	var ran atomic.Int32
	err := Run(t.Context(), Config{Nodes: 3, Exact: true}, func(ctx context.Context, n *Node) error {
		ran.Add(1)
		if j := n.Job(); n.Size() != 3 || len(n.Nodes()) != 3 || j.Launcher != Nobody || j.Node != int(n.Node()) || j.Local != 3 {
			t.Errorf("node %d: %+v, %d in the table", n.Node(), j, len(n.Nodes()))
		}
		all, err := n.Exchange(ctx, fmt.Append(nil, n.Node()))
		if err != nil || len(all) != 3 || string(all[2]) != "2" {
			t.Errorf("node %d: %q, %v", n.Node(), all, err)
		}
		own, err := n.Gather(ctx, 1, fmt.Append(nil, n.Node()))
		if err != nil || (own == nil) != (n.Node() != 1) || own != nil && string(own[0]) != "0" {
			t.Errorf("node %d: gathered %q, %v", n.Node(), own, err)
		}
		return nil
	})
	if err != nil || ran.Load() != 3 {
		t.Errorf("%v, and %d ran", err, ran.Load())
	}
}

// The first node that fails ends the others' context, and is named there.
func TestRun_OneFails(t *testing.T) {
	alone(t)
	err := Run(t.Context(), Config{Nodes: 3}, func(ctx context.Context, n *Node) error {
		if n.Node() == 1 {
			return transport.ErrBusy
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if !errors.Is(err, transport.ErrBusy) || !strings.Contains(err.Error(), "node 1: ") {
		t.Errorf("%v", err)
	}
}

// A node that ends its goroutine, as t.Fatal does, has failed, and the others do not wait for it.
func TestRun_OneEndsItsGoroutine(t *testing.T) {
	alone(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := Run(ctx, Config{Nodes: 2}, func(ctx context.Context, n *Node) error {
		if n.Node() == 1 {
			runtime.Goexit()
		}
		<-ctx.Done()
		return context.Cause(ctx)
	})
	if err == nil || !strings.Contains(err.Error(), "node 1: it has ended its goroutine") || ctx.Err() != nil {
		t.Errorf("%v", err)
	}
}

// A job of one process is a node alone, whatever networks there are.
func TestRun_OneAlone(t *testing.T) {
	alone(t)
	t.Setenv("OMPI_COMM_WORLD_RANK", "0")
	t.Setenv("OMPI_COMM_WORLD_SIZE", "1")
	err := Run(t.Context(), Config{Nodes: 4}, func(_ context.Context, n *Node) error {
		if n.Size() != 1 || n.Job().Launcher != OpenMPI {
			t.Errorf("%d nodes, %+v", n.Size(), n.Job())
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// A node that waits for others says so long before it gives up.
func TestRun_SaysThatItWaits(t *testing.T) {
	if !sharedMemory {
		t.Skip("there is no shared memory here")
	}
	alone(t)
	t.Setenv(EnvNode, "1")
	t.Setenv(EnvNodes, "3")
	t.Setenv(EnvLink, "shm")
	t.Setenv(EnvSegment, fmt.Sprintf("waits-%d", os.Getpid()))
	said := make(lines, 10)
	log.SetOutput(said)
	defer log.SetOutput(os.Stderr)
	err := Run(t.Context(), Config{JoinTimeout: 2 * time.Second}, func(context.Context, *Node) error { return nil })
	if !errors.Is(err, cluster.ErrIncomplete) {
		t.Error(err)
	}
	select {
	case line := <-said:
		if !strings.Contains(line, "node 1 of 3 waits for the others, for 2s at most") {
			t.Errorf("%q", line)
		}
	default:
		t.Error("it has said nothing")
	}
}

// lines is a writer of lines.
type lines chan string

func (l lines) Write(line []byte) (int, error) {
	l <- string(line)
	return len(line), nil
}

// Times and numbers that make no sense are refused, as a limit that has passed already, or nearly so.
func TestRun_Negative(t *testing.T) {
	for _, cfg := range []Config{{Nodes: -1}, {Limit: -1}, {JoinTimeout: -1}, {Limit: 5}, {JoinTimeout: 5}} { // nanoseconds
		err := Run(t.Context(), cfg, func(context.Context, *Node) error { t.Error("it ran"); return nil })
		if err == nil || !strings.Contains(err.Error(), "want 0 or more") {
			t.Errorf("%+v: %v", cfg, err)
		}
	}
}

// A program for two nodes is not started as three.
func TestRun_Exact(t *testing.T) {
	alone(t)
	t.Setenv(EnvNode, "0")
	t.Setenv(EnvNodes, "3")
	err := Run(t.Context(), Config{Nodes: 2, Exact: true}, func(context.Context, *Node) error { return nil })
	if !errors.Is(err, ErrEnvironment) || !strings.HasSuffix(err.Error(), "for 2 nodes, and rawlane run has started 3 (want 2)") {
		t.Errorf("%v", err)
	}
}

// A program may try again where its server did not answer: it has not been a node of the job, which
// has the name that its user gives it.
func TestFindJob_PMIDialledAgain(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // until the job's connection is closed
		for k := 0; ; k++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if k == 0 {
				_ = c.Close()
				continue
			}
			pmitest.New(2, false).Serve(c, 1)
		}
	}()
	defer pmiUsed.Store(pmiUsed.Load())
	pmiUsed.Store(false)
	env := environ{"PMI_PORT": l.Addr().String(), "PMI_ID": "1", EnvJob: "mine"}
	if j, err := findJob(t.Context(), env.get); err == nil || errors.Is(err, ErrEnvironment) {
		t.Errorf("%+v, %v", j, err)
	}
	j, err := findJob(t.Context(), env.get)
	if err != nil || j.Node != 1 || j.Size != 2 || j.Name != "mine" {
		t.Fatalf("%+v, %v", j, err)
	}
	if err := j.pmi.Finalize(); err != nil {
		t.Error(err)
	}
}

// A server that a process has dialled may tell of more processes than there are numbers of nodes.
func TestFindJob_TooManyByDialledPMI(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() { // until the job's connection is closed
		if c, err := l.Accept(); err == nil {
			pmitest.New(cluster.MaxNodes+2, false).Serve(c, cluster.MaxNodes+1)
		}
	}()
	defer pmiUsed.Store(pmiUsed.Load())
	pmiUsed.Store(false)
	j, err := findJob(t.Context(), environ{"PMI_PORT": l.Addr().String(), "PMI_ID": "0"}.get)
	if !errors.Is(err, ErrEnvironment) || j != (Job{}) {
		t.Errorf("%+v, %v; want %v", j, err, ErrEnvironment)
	}
}

// The documentation lists the launchers in the order in which they count.
func TestFindJob_InTheDocumentedOrder(t *testing.T) {
	doc, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	// Each is of a size of its own; the one of PMI-1 makes no sense, so that nothing is dialled.
	all := []struct {
		inDoc string
		env   map[string]string
	}{
		{"RAWLANE_NODE, ", map[string]string{EnvNode: "0", EnvNodes: "2"}},
		{"OMPI_COMM_WORLD_RANK, ", map[string]string{"OMPI_COMM_WORLD_RANK": "0", "OMPI_COMM_WORLD_SIZE": "3"}},
		{"PMI_FD, ", map[string]string{"PMI_FD": "no number"}},
		{"SLURM_STEP_NUM_TASKS, ", map[string]string{"SLURM_PROCID": "0", "SLURM_STEP_NUM_TASKS": "4"}},
	}
	for i, first := range all[:len(all)-1] {
		for _, second := range all[i+1:] {
			env := maps.Clone(first.env)
			maps.Copy(env, second.env)
			got, errBoth := findJob(t.Context(), func(name string) string { return env[name] })
			want, errFirst := findJob(t.Context(), func(name string) string { return first.env[name] })
			if got != want || (errBoth == nil) != (errFirst == nil) {
				t.Errorf("%sbeside %s: %+v, %v; want %+v, %v", first.inDoc, second.inDoc, got, errBoth, want, errFirst)
			}
			if strings.Index(string(doc), "//\t"+first.inDoc) > strings.Index(string(doc), "//\t"+second.inDoc) {
				t.Errorf("doc.go: %scounts before %s", first.inDoc, second.inDoc)
			}
		}
	}
}
