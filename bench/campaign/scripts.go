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
	"./" + enginePackage, "./" + reliablePackage, "./cluster/internal/discovery", "./mcd/internal/auth",
	"./mpi/internal/consensus", "./mpi/internal/matching", "./rawnet/internal/mux", "./sim/ether",
}

// workScripts is layer L5. It fails, too, if scripts are no longer found.
func workScripts(ctx context.Context, w *workshop, _, _ uint64) (r result, err error) {
	args := append([]string{"test", "-count=1", "-v", "-run", "^TestTranscripts$"}, scripted...)
	out, err := w.command(ctx, "go", args...).CombinedOutput()
	repeat := "go " + strings.Join(args, " ")
	r, err = judge(string(out), err, repeat)
	if n := r.figures["scripts"]; err == nil && r.violation == nil && n < scriptCount {
		output := fmt.Sprintf("%d frame scripts (want %d at least)", n, scriptCount)
		r.violation = &violation{Repeat: repeat, Output: output}
	}
	return r, err
}
