// Package start starts a node of a cluster from what the environment says: a program's main
// function, the same for each launcher.
//
//	func main() { start.Main(start.Config{Nodes: 4}, work) }
//
//	func work(ctx context.Context, n *start.Node) error {
//		fmt.Printf("node %d of %d\n", n.Node(), n.Size())
//		world, err := mpi.Open(n.Endpoint, mpi.Config{})
//		...
//	}
//
// The same program is then started in any of these ways, one node to a process:
//
//	./program                         4 nodes in this process, on a fabric in memory
//	rawlane run -n 4 ./program        in network namespaces of this host
//	mpirun -n 4 ./program             MPICH's (PMI-1), or Open MPI's (its environment)
//	srun --mpi=pmi2 -n 4 ./program    Slurm: by PMI-1, or without it by its environment
//	completionMode: Indexed           Kubernetes; RAWLANE_NODES says how many
//
// The first of these that is there counts:
//
//	environment                                  launcher      network interface
//	RAWLANE_NODE, RAWLANE_NODES                  rawlane run   RAWLANE_INTERFACES
//	OMPI_COMM_WORLD_RANK, _SIZE, _LOCAL_SIZE     Open MPI      see below
//	PMI_FD, or PMI_PORT and PMI_ID               PMI-1         see below
//	SLURM_STEP_NUM_TASKS, SLURM_PROCID           Slurm         see below
//	JOB_COMPLETION_INDEX, RAWLANE_NODES          Kubernetes    see below
//
// If all processes are on one host they meet in shared memory. If each is on a host of its own they
// meet on the network: by the first interface that RAWLANE_INTERFACES names, or the only one that
// there is, and by raw sockets, or UDP where those are refused. Further interfaces are the
// program's: a node has one network. If some share a host and others do not, their links are UDP's,
// with shared memory for those of the same host; this takes PMI-1, by which they tell each other
// where they listen.
//
// RAWLANE_LINK (ring, packet, xdp, udp, shm) asks for another link, RAWLANE_KEY_FILE names the key
// of the cluster, and RAWLANE_SEGMENT a segment of shared memory for those of a host.
//
// Processes of different jobs do not hear each other: the job's name, as its launcher gives it,
// makes the cluster's number.
package start
