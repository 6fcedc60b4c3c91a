package rawlane_test

import (
	"os"
	"regexp"
	"slices"
	"testing"
)

// private is a folder that is a program's or internal.
var private = regexp.MustCompile(`^(cmd|examples|bench|\..*)(/|$)|(^|/)internal(/|$)`)

// The package comment lists each public package of the module once, and no other.
func TestDocListsThePackages(t *testing.T) {
	text, err := os.ReadFile("doc.go")
	if err != nil {
		t.Fatal(err)
	}
	var listed []string
	for _, m := range regexp.MustCompile(`(?m)^//\t([a-z/]+) {2,}\S`).FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, m[1])
	}
	var public []string
	files, _ := sources(t)
	for _, f := range files {
		if f.dir != "." && !private.MatchString(f.dir) && !slices.Contains(public, f.dir) {
			public = append(public, f.dir)
		}
	}
	for _, p := range public {
		if !slices.Contains(listed, p) {
			t.Errorf("doc.go does not list %s", p)
		}
	}
	for _, p := range listed {
		if !slices.Contains(public, p) {
			t.Errorf("doc.go lists %s, which is no public package", p)
		}
	}
}
