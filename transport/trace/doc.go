// Package trace logs the frames that pass a link, and its errors, through log/slog.
//
//	link = trace.New(link, slog.Default(), trace.Config{})
//
//	DEBUG sent link=eth0 src=02:00:00:00:00:01 dst=02:00:00:00:00:02 ethertype=0x88b5 vid=101
//	      pcp=1 bytes=20
//
// Each frame is one record, at slog.LevelDebug or a level of your choice: a sent one once the inner
// link has taken it, a received one when Poll hands it out. A tagged frame has vid and pcp, and dei
// if that is set; bytes is the payload's length. Errors of Send, Poll, Wait and Close are logged as
// warnings, except those that are no failure: ErrBusy, ErrClosed, the end of a context. One of Wait
// that stays the same, as while an interface is down, is logged once a minute, with how often it
// came again. Close logs the counters.
//
// While the level is disabled, Send and Poll ask the logger's handler once a call, and do not
// allocate.
package trace
