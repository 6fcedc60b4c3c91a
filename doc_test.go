package rawlane_test

import (
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
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

// The architecture's floors name each public package, and each of the house's own, by its path or
// the end of that.
func TestArchitectureListsThePackages(t *testing.T) {
	page, err := os.ReadFile("docs/architecture.md")
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`^internal/[^/]+$`)
	var missing []string
	files, _ := sources(t)
	for _, f := range files {
		if f.dir == "." || private.MatchString(f.dir) && !own.MatchString(f.dir) {
			continue
		}
		named := slices.ContainsFunc([]string{f.dir, path.Base(f.dir)}, func(name string) bool {
			return strings.Contains(string(page), "`"+name+"`")
		})
		if !named && !slices.Contains(missing, f.dir) {
			missing = append(missing, f.dir)
		}
	}
	if len(missing) > 0 {
		t.Errorf("docs/architecture.md does not name %s", strings.Join(missing, ", "))
	}
}

// Where a user meets ports, those that the library's packages take are named.
func TestDocs_PortsOfTheLibrary(t *testing.T) {
	files, _ := sources(t)
	taken := []string{"246 to 248"} // of package mpi: its own, and the two behind it
	for _, f := range files {
		if private.MatchString(f.dir) {
			continue
		}
		text, err := os.ReadFile(path.Join(f.dir, f.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`Port mcd\.PortID = (\d+)`).FindAllStringSubmatch(string(text), -1) {
			taken = append(taken, m[1])
		}
	}
	if len(taken) < 8 {
		t.Errorf("found %v alone", taken)
	}
	for _, page := range []string{"mcd/port.go", "docs/two-machines.md", "docs/wire-format.md", "docs/without-root.md"} {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, port := range taken {
			if !regexp.MustCompile(`\b` + port + `\b`).Match(text) {
				t.Errorf("%s does not name port %s", page, port)
			}
		}
	}
}

// The ports of the command's own are named, too, where users are given ports by rules; and the rule
// that gives some of them away gives all of the library's.
func TestDocs_PortsOfTheCommand(t *testing.T) {
	const page = "docs/without-root.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	files, _ := sources(t)
	for _, f := range files {
		if f.dir != "cmd/rawlane/internal/bench" && f.dir != "cmd/rawlane/internal/launch" {
			continue
		}
		code, err := os.ReadFile(path.Join(f.dir, f.name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`mcd\.PortID = (\d+)`).FindAllStringSubmatch(string(code), -1) {
			found++
			if !regexp.MustCompile(`\b` + m[1] + `\b`).Match(text) {
				t.Errorf("%s does not name port %s", page, m[1])
			}
		}
	}
	if found != 3 {
		t.Errorf("found %d ports of the command's own, want 3", found)
	}
	if !strings.Contains(string(text), "ports 0-99,246-255\n") {
		t.Errorf("%s has no rule with all ports of the library", page)
	}
}
