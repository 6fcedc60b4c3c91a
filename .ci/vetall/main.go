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

	"golang.org/x/tools/go/analysis/checker"
	"golang.org/x/tools/go/analysis/suite/vet"
	"golang.org/x/tools/go/packages"
)

func main() {
	bad := false
	for _, system := range os.Args[1:] {
		goos, goarch, ok := strings.Cut(system, "/")
		if !ok {
			fmt.Fprintf(os.Stderr, "usage: vetall GOOS/GOARCH ...\n")
			os.Exit(2)
		}
		if err := check(goos, goarch); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", system, err)
			bad = true
		}
	}
	if bad {
		os.Exit(1)
	}
}

func check(goos, goarch string) error {
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
	graph, err := checker.Analyze(vet.Suite, pkgs, nil)
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
