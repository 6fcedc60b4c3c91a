// Package trace logs what passes a link, through log/slog: a record per frame, and what goes wrong.
//
//	link = trace.New(link, slog.Default(), trace.Config{})
//
//	DEBUG sent link=eth0 src=02:00:00:00:00:01 dst=02:00:00:00:00:02 ethertype=0x88b5 vid=101 pcp=1 bytes=20
//
// Frames are logged at slog.LevelDebug, or a level of your choice: sent ones when the link inside has taken them,
// received ones when Poll hands them out. vid and pcp are there if the frame is tagged, dei if that is set; bytes is
// the payload's length. What Send, Poll, Wait and Close report is logged as a warning, besides what is no failure:
// ErrBusy, ErrClosed, and the end of a context. Close logs what has passed.
//
// While the level is disabled, a call of Send or Poll costs one question to the logger's handler, and allocates nothing.
package trace
