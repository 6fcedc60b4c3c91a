// Package schedule has the barrier algorithms as data: for each rank, the messages that it awaits
// and those that it sends then.
//
//	Tree(3), 9 ranks        rank 0              rank 3              rank 1
//	                        await 1, 2          await 4, 5          notify 0
//	    0 <-+- 1            await 3, 6          notify 0            await 0
//	    ^   +- 2            notify all          await 0
//	    +-- 3 <- 4, 5
//	    +-- 6 <- 7, 8
//
// A generator is a few lines that write one rank's steps. The engine that runs them (package
// barrier), the checker (Check), the model of their time (Cost) and the drawing know no
// algorithm. Masks renumber the ranks, and leave them in their groups (Subset); Stripe and
// Hierarchical make schedules of schedules.
//
// A schedule is right if the last step of each rank causally follows the entry of every rank. Check
// proves that for a size.
//
// Source: MCD §3, SCMD §4.
package schedule
