package start

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/rawlane/rawlane/cluster"
	"github.com/rawlane/rawlane/cluster/start/internal/pmi"
	"github.com/rawlane/rawlane/mcd"
)

// The environment of a program that "rawlane run" starts. A user may set EnvJob and the last four
// for other launchers, too.
const (
	EnvNode       = "RAWLANE_NODE"       // the number of its node
	EnvNodes      = "RAWLANE_NODES"      // the number of nodes
	EnvHostfile   = "RAWLANE_HOSTFILE"   // a file that lists the nodes
	EnvJob        = "RAWLANE_JOB"        // the name of the job: its processes hear no others of the network
	EnvListen     = "RAWLANE_LISTEN"     // where its udp link listens, if it has no interfaces
	EnvSeeds      = "RAWLANE_SEEDS"      // likewise, where others do
	EnvInterfaces = "RAWLANE_INTERFACES" // its network interfaces, separated by commas
	EnvLink       = "RAWLANE_LINK"       // the kind of link, if one was asked for, or no other will do
	EnvSegment    = "RAWLANE_SEGMENT"    // where its link over shared memory meets the others
	EnvKeyFile    = "RAWLANE_KEY_FILE"   // the cluster's key
)

// Launcher is who has started a process.
type Launcher string

// The launchers.
const (
	Nobody     Launcher = ""            // a process by itself
	RawlaneRun Launcher = "rawlane run" // the command
	PMI        Launcher = "PMI-1"       // MPICH's mpirun, Slurm with --mpi=pmi2
	OpenMPI    Launcher = "Open MPI"    // its mpirun
	Slurm      Launcher = "Slurm"       // srun without PMI
	Kubernetes Launcher = "Kubernetes"  // an indexed Job
)

// Job says which process of which job this one is.
type Job struct {
	Launcher Launcher
	Name     string // of the job: the same in all its processes; "" if the launcher gives none
	Node     int    // of this process
	Size     int    // how many processes there are
	Local    int    // how many of them are on this host; 0: not known
	pmi      *pmi.Client
}

// ErrEnvironment: a launcher's variables make no sense, or one is missing.
var ErrEnvironment = errors.New("environment")

// pmiUsed: the connection to a PMI server is for one node, and for once.
var pmiUsed atomic.Bool

// findJob reads the environment, and asks a PMI server if there is one.
func findJob(ctx context.Context, env func(string) string) (j Job, err error) {
	switch {
	case env(EnvNode) != "":
		return numbers(Job{Launcher: RawlaneRun, Name: env(EnvJob)}, env, EnvNode, EnvNodes)
	case env("OMPI_COMM_WORLD_RANK") != "": // before PMI, within which its mpirun may run
		j = Job{Launcher: OpenMPI, Name: cmp.Or(env(EnvJob), env("OMPI_MCA_ess_base_jobid")+env("PMIX_NAMESPACE"))}
		const local = "OMPI_COMM_WORLD_LOCAL_SIZE"
		if j, err = numbers(j, env, "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"); err != nil || env(local) == "" {
			return j, err
		}
		if j.Local, err = strconv.Atoi(env(local)); err != nil || j.Local < 1 || j.Local > j.Size {
			return Job{}, fmt.Errorf("%w: %s=%q (want a number from 1 to %d)",
				ErrEnvironment, local, env(local), j.Size)
		}
		return j, nil
	case env("PMI_FD") != "" || env("PMI_PORT") != "" && env("PMI_ID") != "":
		if err := checkPMI(env); err != nil {
			return j, err
		}
		if pmiUsed.Swap(true) {
			return j, fmt.Errorf("%w: this process has been a node of its PMI-1 job already", ErrEnvironment)
		}
		c, err := pmi.Open(ctx, env)
		if err != nil {
			pmiUsed.Store(env("PMI_FD") != "") // what was inherited is gone; another try dials again
			return j, err
		}
		j = Job{Launcher: PMI, Name: cmp.Or(env(EnvJob), inSlurm(env, c.Job)), Node: c.Rank, Size: c.Size, pmi: c}
		if j.Size > cluster.MaxNodes { // as only a server that was dialled tells
			_ = j.close(false) // it keeps the connection, and does not fail
			return Job{}, fmt.Errorf("%w: a PMI-1 job of %d processes (want %d at most)",
				ErrEnvironment, j.Size, cluster.MaxNodes)
		}
		return j, nil
	case inStep(env): // a batch script, which is no rank, has a SLURM_PROCID, too
		j = Job{Launcher: Slurm, Name: env(EnvJob)}
		if j.Name == "" && env("SLURM_JOB_ID") != "" {
			j.Name = inSlurm(env, env("SLURM_JOB_ID")+"."+env("SLURM_STEP_ID"))
		}
		j, err = numbers(j, env, "SLURM_PROCID", "SLURM_STEP_NUM_TASKS")
		switch env("SLURM_STEP_NUM_NODES") {
		case "1":
			j.Local = j.Size
		case env("SLURM_STEP_NUM_TASKS"):
			j.Local = 1
		}
		return j, err
	case env("JOB_COMPLETION_INDEX") != "":
		j = Job{Launcher: Kubernetes, Name: env(EnvJob), Local: 1}
		host, _ := os.Hostname()
		if j.Name == "" {
			j.Name = podJob(host, env("JOB_COMPLETION_INDEX"))
		}
		if j, err = numbers(j, env, "JOB_COMPLETION_INDEX", EnvNodes); err == nil && j.Name == "" {
			err = fmt.Errorf("%w: host name %q does not end in the pod's index, and does not tell the Job "+
				"(set %s to its name)", ErrEnvironment, host, EnvJob)
		}
		return j, err
	case env(EnvNodes) != "":
		return Job{}, fmt.Errorf("%w: %s=%q, and nothing says which of these this process is "+
			"(set %s from 0 on; a Job of Kubernetes wants completionMode: Indexed)",
			ErrEnvironment, EnvNodes, env(EnvNodes), EnvNode)
	}
	return Job{}, nil
}

// inStep reports whether this process is a rank of one of Slurm's job steps. Those that Slurm makes
// by itself have reserved numbers: salloc's shell, batch scripts and what adopts other processes.
//
// Source: slurm.h (SLURM_MAX_NORMAL_STEP_ID).
func inStep(env func(string) string) bool {
	id, _ := strconv.ParseUint(env("SLURM_STEP_ID"), 10, 32) // 0, if it is not told
	return env("SLURM_STEP_NUM_TASKS") != "" && id <= 0xfffffff0
}

// inSlurm is the name of a job with that of its Slurm cluster, if it is in one that has a name:
// others number their jobs likewise.
func inSlurm(env func(string) string, job string) string {
	if name := env("SLURM_CLUSTER_NAME"); name != "" {
		return name + "/" + job
	}
	return job
}

// namespaceFile has the namespace of a pod, if that has a service account's token.
var namespaceFile = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

// podJob names the Job of a pod, with its namespace, as far as that is known: others have Jobs of
// the same name. The pod's host name is the Job's name and the index, unless it has its machine's:
// then the Job is not known.
func podJob(host, index string) string {
	job, ok := strings.CutSuffix(host, "-"+index)
	if !ok {
		return ""
	}
	namespace, err := os.ReadFile(namespaceFile)
	if err != nil {
		return job
	}
	return strings.TrimSpace(string(namespace)) + "/" + job
}

// checkPMI checks what a process has inherited from a PMI server, if it is not to dial one.
func checkPMI(env func(string) string) error {
	fd := env("PMI_FD")
	if fd == "" {
		return nil
	}
	if _, err := strconv.ParseUint(fd, 10, 31); err != nil {
		return fmt.Errorf("%w: PMI_FD=%q (want the number of a socket)", ErrEnvironment, fd)
	}
	_, err := numbers(Job{}, env, "PMI_RANK", "PMI_SIZE")
	return err
}

// numbers reads the node's number, and how many there are.
func numbers(j Job, env func(string) string, node, size string) (Job, error) {
	var err1, err2 error
	j.Node, err1 = strconv.Atoi(env(node))
	j.Size, err2 = strconv.Atoi(env(size))
	if err1 != nil || err2 != nil || j.Node < 0 || j.Node >= j.Size || j.Size > cluster.MaxNodes {
		return Job{}, fmt.Errorf("%w: %s=%q, %s=%q (want a number from 0 on, and a larger one up to %d)",
			ErrEnvironment, node, env(node), size, env(size), cluster.MaxNodes)
	}
	return j, nil
}

// cluster is the number of the cluster that the job's processes are: 0 without a name.
func (j *Job) cluster() mcd.ClusterID {
	if j.Name == "" {
		return 0
	}
	return mcd.ClusterID(j.hash())
}

func (j *Job) hash() uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(string(j.Launcher) + "/" + j.Name)) // never fails
	return h.Sum32()
}
