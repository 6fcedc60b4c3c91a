// Package schedule has the barrier algorithms, as data: what each rank awaits and whom it then tells.
//
//	Tree(3), 9 ranks        rank 0              rank 3              rank 1
//	                        await 1, 2          await 4, 5          tell 0
//	    0 <-+- 1            await 3, 6          tell 0              await 0
//	    ^   +- 2            tell all            await 0
//	    +-- 3 <- 4, 5
//	    +-- 6 <- 7, 8
//
// A generator is a few lines that write one rank's steps. What runs them (package barrier), proves them (Check),
// predicts their time (Cost) and draws them knows no algorithm. Masks renumber the ranks; Stripe and Hierarchical
// make schedules of schedules.
//
// A schedule is right if the last step of each rank causally follows the entry of every rank; Check proves that for a
// size.
//
// Source: MCD §3, SCMD §4.
package schedule
