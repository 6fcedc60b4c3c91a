// Package mpi is message passing between the processes of a cluster, with the meaning and the names
// of MPI: ranks, communicators, tags, requests.
//
//	w, err := mpi.Open(ep, mpi.Config{}) // in each process
//	c := w.Comm()
//
//	err = mpi.Send(ctx, c, []float64{1, 2, 3}, 1, 7)          // rank 0
//	s, err := mpi.Recv(ctx, c, buf, mpi.AnySource, 7)          // rank 1
//
// # What is promised
//
// Messages from one rank to another do not overtake each other, as far as one receive takes both.
// Each arrives once. Whatever can be matched is, also while nobody calls, and however many others
// lie before it. What a process keeps for another one is bounded; a send beyond that waits.
//
// If a process dies, what is under way with it fails with a *ProcessError that names it; a receive
// from any source goes on as long as another process of its communicator is there. A process that
// begins anew is not taken for its former self.
//
// # How a message goes
//
//	written    long, and its receive was there first: into the receive's memory, without a copy
//	eager      up to Config.EagerLimit: with its bytes; kept if no receive is there yet
//	requested  longer, or without credit: its envelope goes, and the receiver reads the bytes
//
// Counters says how many went by which way. With Config.OfferFrom 1 what collective operations send
// is all written.
//
// # Collective operations
//
//	err = mpi.Bcast(ctx, c, buf, 0)                  // rank 0's buf, in all processes
//	err = mpi.Allreduce(ctx, c, data, sum, mpi.Sum)
//	r := mpi.Iallreduce(c, data, sum, mpi.Sum)       // the same, to be waited for later
//
// All processes of a communicator call the same ones in one order, with one root, and with
// arguments of one length. Where these differ one fails, or waits until its context ends; but where
// each gives itself as the root, all of a short Bcast or Scatter succeed, each with its own data.
// Two operations that go by messages of one length between the same ranks, such as a Scan and a
// Reduce, are not told apart where no multicast goes: they have wrong results.
// Where a process fails in one, as its context has ended, another process is down, or an Op panics
// or ends its goroutine, what the others still wait for in it ends with ErrWithdrawn, which names
// the process, or another one that had heard so; and with a *ProcessError of the one that is down.
// Who has all that it needs by then has no error. Algorithms says by which steps each goes.
//
// # Windows
//
// A Win is memory that other processes put, get and update without its owner's part:
//
//	win, err := mpi.NewWin(ctx, c, memory) // all processes
//	err = win.Fence(ctx)
//	err = win.Put(ctx, data, rank, 0)
//	err = win.Fence(ctx)                   // what all have put is in place
//
// Source: MBCF §2.1, §2.2 (MPI/MBCF), §3; MPI 5.0.
package mpi
