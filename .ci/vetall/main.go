// Command vetall runs go vet's checks for other systems. It reads the sources of all packages, and compiles none: "go vet"
// with another GOOS compiles the standard library and all dependencies for it first, which takes minutes on a new machine.
//
//	go run ./.ci/vetall darwin/arm64 windows/amd64
package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/tools/go/analysis"
	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/passes/appends"
	"golang.org/x/tools/go/analysis/passes/assign"
	"golang.org/x/tools/go/analysis/passes/atomic"
	"golang.org/x/tools/go/analysis/passes/bools"
	"golang.org/x/tools/go/analysis/passes/buildtag"
	"golang.org/x/tools/go/analysis/passes/composite"
	"golang.org/x/tools/go/analysis/passes/copylock"
	"golang.org/x/tools/go/analysis/passes/errorsas"
	"golang.org/x/tools/go/analysis/passes/lostcancel"
	"golang.org/x/tools/go/analysis/passes/nilfunc"
	"golang.org/x/tools/go/analysis/passes/printf"
	"golang.org/x/tools/go/analysis/passes/shift"
	"golang.org/x/tools/go/analysis/passes/stringintconv"
	"golang.org/x/tools/go/analysis/passes/structtag"
	"golang.org/x/tools/go/analysis/passes/unreachable"
	"golang.org/x/tools/go/analysis/passes/unsafeptr"
	"golang.org/x/tools/go/analysis/passes/unusedresult"
	"golang.org/x/tools/go/packages"
)

var checks = []*analysis.Analyzer{
	appends.Analyzer, assign.Analyzer, atomic.Analyzer, bools.Analyzer, buildtag.Analyzer, composite.Analyzer,
	copylock.Analyzer, errorsas.Analyzer, lostcancel.Analyzer, nilfunc.Analyzer, printf.Analyzer, shift.Analyzer,
	stringintconv.Analyzer, structtag.Analyzer, unreachable.Analyzer, unsafeptr.Analyzer, unusedresult.Analyzer,
}

func main() {
	bad := false
	for _, system := range os.Args[1:] {
		goos, goarch, ok := strings.Cut(system, "/")
		if !ok {
			fmt.Fprintf(os.Stderr, "usage: vetall GOOS/GOARCH ...\n")
			os.Exit(2)
		}
		if err := vet(goos, goarch); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, err)
			bad = true
		}
	}
	if bad {
		os.Exit(1)
	}
}

func vet(goos, goarch string) error {
	pkgs, err := packages.Load(&packages.Config{
		Mode:  packages.LoadAllSyntax | packages.NeedModule,
		Env:   append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0"),
		Tests: true,
	}, "./...")
	if err != nil {
		return err
	}
	if n := packages.PrintErrors(pkgs); n > 0 {
		return fmt.Errorf("%d errors", n)
	}
	graph, err := checker.Analyze(checks, pkgs, nil)
	if err != nil {
		return err
	}
	found := 0
	for _, root := range graph.Roots {
		if root.Err != nil {
			return root.Err
		}
		found += len(root.Diagnostics)
	}
	if found > 0 {
		return errors.Join(graph.PrintText(os.Stderr, -1), fmt.Errorf("%d findings", found))
	}
	return nil
}
