package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rawlane/rawlane/mcd/mcdtest"
)

// docs/two-machines.md shows this program as it is.
func TestTheTutorialShowsThisProgram(t *testing.T) {
	page, err := os.ReadFile("../../docs/two-machines.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```go\n"+string(program)+"```") {
		t.Error("the program in docs/two-machines.md and examples/pair/main.go differ")
	}
}

// Each node prints the whole of what node 0 has written, also where numbers have two digits.
func TestWork_ManyNodes(t *testing.T) {
	nodes := mcdtest.Open(t, 12, mcdtest.Config{})
	name := filepath.Join(t.TempDir(), "out")
	out, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer func(before *os.File) { os.Stdout = before }(os.Stdout)
	os.Stdout = out
	var all sync.WaitGroup
	for _, ep := range nodes {
		all.Go(func() {
			if err := work(t.Context(), ep); err != nil {
				t.Errorf("node %d: %v", ep.Node(), err)
			}
		})
	}
	all.Wait()
	said, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for k := 1; k < len(nodes); k++ {
		if want := fmt.Sprintf("node %d has in its memory: hello, node %d\n", k, k); !strings.Contains(string(said), want) {
			t.Errorf("no line %q in %q", want, said)
		}
	}
}
