package barrier

import (
	"os"

	"github.com/rawlane/rawlane/barrier/schedule"
)

// ReadTable reads a table for Config from a file that rawlane tune has written, or that was written
// by hand; see schedule.ParseTable. Errors name the file, and the line.
func ReadTable(path string) (*schedule.Table, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return schedule.ParseTable(path, f)
}
