package main

import (
	"os"
	"strings"
	"testing"
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
