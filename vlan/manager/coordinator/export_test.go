package coordinator

import (
	"log/slog"
	"strings"
)

// Troubles has a control meet an error, or none, in each of some periods, and returns what it logs.
func Troubles(errs ...error) string {
	var told strings.Builder
	c := &loop{options: ControlOptions{Logger: slog.New(slog.NewTextHandler(&told, nil))}}
	for _, err := range errs {
		c.trouble(err)
	}
	return told.String()
}
