package server

import (
	"context"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// NotifySystemd tells systemd of a state, such as "READY=1", if the service asks for that
// (Type=notify). Elsewhere it does nothing.
func NotifySystemd(state string) error {
	path := os.Getenv("NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	if path[0] == '@' { // an abstract name
		path = "\x00" + path[1:]
	}
	c, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		_, err = c.Write([]byte(state))
		c.Close()
	}
	if err != nil {
		return fmt.Errorf("notify systemd: %w", err)
	}
	return nil
}

// WatchdogInterval is how often systemd wants to hear from the service (WatchdogSec), or 0 if it
// does not.
func WatchdogInterval() time.Duration {
	if pid := os.Getenv("WATCHDOG_PID"); pid != "" && pid != strconv.Itoa(os.Getpid()) {
		return 0
	}
	us, err := strconv.ParseInt(os.Getenv("WATCHDOG_USEC"), 10, 64)
	if err != nil || us <= 0 {
		return 0
	}
	return time.Duration(us) * time.Microsecond
}

// Watchdog tells systemd, twice in each interval, that requests can still be answered, until ctx
// ends. Without an interval it does nothing.
func (s *Server) Watchdog(ctx context.Context, interval time.Duration) {
	if interval <= 0 {
		return
	}
	tick := time.NewTicker(interval / 2)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, _ = s.Routes() // takes the lock that all requests need
		_ = NotifySystemd("WATCHDOG=1")
	}
}
