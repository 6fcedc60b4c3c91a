//go:build linux

package main

import (
	"context"
	"fmt"
	"strings"
)

// scripted are the packages whose cores are tested by frame scripts: text files of what goes in,
// and of what has to come out at which instant.
var scripted = []string{
	"./" + enginePackage, "./" + reliablePackage, "./cluster/internal/discovery", "./sim/ether",
}

// workScripts is layer L5.
func workScripts(ctx context.Context, w *workshop, _, _ uint64) (result, error) {
	args := append([]string{"test", "-count=1", "-v", "-run", "^TestTranscripts$"}, scripted...)
	out, err := w.command(ctx, "go", args...).CombinedOutput()
	return judge(string(out), err, "go "+strings.Join(args, " "))
}

// scriptsWhole fails if scripts are no longer found.
func scriptsWhole(figures map[string]uint64, _ profile) error {
	if n := figures["scripts"]; n < scriptCount {
		return fmt.Errorf("%d frame scripts in %s (want %d at least)", n, strings.Join(scripted, " "), scriptCount)
	}
	return nil
}
