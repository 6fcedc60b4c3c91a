package main

import (
	"os"
	"strings"
	"testing"
)

// The README shows this program as it is.
func TestReadmeShowsTheFirstProgram(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile("main.go")
	if err != nil {
		t.Fatal(err)
	}
	_, code, found := strings.Cut(string(program), "package main\n")
	if !found || !strings.Contains(string(readme), "```go\npackage main\n"+code+"```") {
		t.Error("the program in README.md and examples/first/main.go differ")
	}
}
