package rawlane_test

import (
	"flag"
	"fmt"
	"go/ast"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

var rewrite = flag.Bool("rewrite", false, "write the generated pages of docs/ anew")

// generated compares a page of docs/ with what the source says, or writes it.
func generated(t *testing.T, page, want string) {
	t.Helper()
	if *rewrite {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	got, err := os.ReadFile(page)
	if err != nil || string(got) != want {
		t.Errorf("%s is not what the source says: write it with: go test . -run TestReference -rewrite", page)
	}
}

// A public error has a line in docs/errors.md, from its comment.
func TestReference_Errors(t *testing.T) {
	files, _ := sources(t)
	var b strings.Builder
	b.WriteString("# Errors\n\n*Reference, generated from the source: `go test . -run TestReference -rewrite`.*\n\n" +
		"`errors.Is` tells the class of an error, `errors.As` its facts. Every error names the object and the act,\n" +
		"and most the cause and what to do.\n")
	last := ""
	for _, f := range files {
		if private.MatchString(f.dir) {
			continue
		}
		for _, e := range sentinels(f.syntax) {
			if f.dir != last {
				last = f.dir
				fmt.Fprintf(&b, "\n## `%s`\n\n| error | when |\n|---|---|\n", f.dir)
			}
			fmt.Fprintf(&b, "| `%s.%s` | %s |\n", path.Base(f.dir), e[0], e[1])
		}
	}
	generated(t, "docs/errors.md", b.String())
}

// sentinels returns the exported errors of a file, and what their comments say.
func sentinels(file *ast.File) (all [][2]string) {
	for _, d := range file.Decls {
		g, ok := d.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, s := range g.Specs {
			v, ok := s.(*ast.ValueSpec)
			if !ok || !regexp.MustCompile(`^Err[A-Z]`).MatchString(v.Names[0].Name) {
				continue
			}
			doc := v.Doc
			if doc == nil {
				doc = v.Comment
			}
			if doc == nil {
				doc = g.Doc
			}
			text := strings.Join(strings.Fields(doc.Text()), " ")
			name := v.Names[0].Name
			text = strings.TrimLeft(strings.TrimPrefix(text, name), ": ")
			all = append(all, [2]string{name, strings.ReplaceAll(text, "|", "\\|")})
		}
	}
	return all
}

// Each of the manager's metrics has a line in docs/metrics.md, with the help that it gives itself.
func TestReference_Metrics(t *testing.T) {
	files, _ := sources(t)
	var lines []string
	for _, f := range files {
		if !strings.HasPrefix(f.dir, "vlan/manager") {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok {
				if m := metric(call); m != "" {
					lines = append(lines, m)
				}
			}
			return true
		})
	}
	if len(lines) < 10 {
		t.Fatalf("found %d metrics: does the manager define them in another way now?", len(lines))
	}
	slices.Sort(lines)
	generated(t, "docs/metrics.md", "# Metrics of the manager\n\n"+
		"*Reference, generated from the source: `go test . -run TestReference -rewrite`.*\n\n"+
		"`GET /metrics` of a manager answers in Prometheus' text format: `curl --unix-socket\n"+
		"/run/rawlane/manager.sock http://manager/metrics`. [The manager API](manager-api.md) says who may ask, and\n"+
		"[running managers](running-managers.md) how Prometheus does.\n\n"+
		"| metric | kind | what it is |\n|---|---|---|\n"+strings.Join(lines, "\n")+"\n")
}

// metric returns the line of a call that defines a metric; "" of any other.
func metric(call *ast.CallExpr) string {
	if len(call.Args) < 2 {
		return ""
	}
	text := func(i int) string {
		lit, ok := call.Args[i].(*ast.BasicLit)
		if !ok {
			return ""
		}
		s, _ := strconv.Unquote(lit.Value) // "" of a number
		return s
	}
	name, help := text(0), text(1)
	if !strings.HasPrefix(name, "rawlane_") || help == "" {
		return ""
	}
	kind := "gauge"
	if strings.HasSuffix(name, "_total") {
		kind = "counter"
	}
	return fmt.Sprintf("| `%s` | %s | %s |", name, kind, help)
}

// kinds are the four kinds of documentation: a page is one of them, and says so.
var kinds = regexp.MustCompile(`(?i)^\*(Tutorial|How-to|Reference|Explanation)\b`)

// Each page of docs/ says what kind it is, and the README lists it.
func TestDocs_LabelledAndListed(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages, err := os.ReadDir("docs")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pages {
		if path.Ext(p.Name()) != ".md" {
			continue
		}
		text, err := os.ReadFile("docs/" + p.Name())
		if err != nil {
			t.Fatal(err)
		}
		paragraphs := strings.SplitN(string(text), "\n\n", 3)
		if len(paragraphs) < 2 || !kinds.MatchString(paragraphs[1]) {
			t.Errorf("docs/%s: want *Tutorial*, *How-to*, *Reference* or *Explanation* at the beginning of the first paragraph", p.Name())
		}
		if !strings.Contains(string(readme), "(docs/"+p.Name()+")") {
			t.Errorf("README.md does not list docs/%s", p.Name())
		}
	}
}

var link = regexp.MustCompile(`\]\(([^)#:]+)(#[^)]*)?\)`)

// anchors returns the anchors of a page's headings, as GitHub makes them.
func anchors(t *testing.T, page string) (all []string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		title, isHeading := strings.CutPrefix(strings.TrimLeft(line, "#"), " ")
		if !isHeading || !strings.HasPrefix(line, "#") {
			continue
		}
		slug := strings.Map(func(c rune) rune {
			switch {
			case c == ' ':
				return '-'
			case c == '-' || c == '_' || unicode.IsLetter(c) || unicode.IsDigit(c):
				return unicode.ToLower(c)
			}
			return -1
		}, strings.TrimSpace(title))
		all = append(all, "#"+slug)
	}
	return all
}

// documents are the texts of all pages, by their names.
func documents(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, dir := range []string{".", "docs", "docs/decisions", "docs/papers", "bench"} {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			if path.Ext(e.Name()) != ".md" {
				continue
			}
			page := path.Join(dir, e.Name())
			text, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			pages[page] = string(text)
		}
	}
	return pages
}

// address is a web address in a document.
var address = regexp.MustCompile(`https?://[^\s"'` + "`" + `)>]+`)

// Addresses that the documents have programs ask for are such as net/http takes: a service that has
// a name, as those of package rawnet may, is no port.
func TestDocs_AddressesParse(t *testing.T) {
	for page, text := range documents(t) {
		for _, a := range address.FindAllString(text, -1) {
			if _, err := url.Parse(a); err != nil {
				t.Errorf("%s: %v", page, err)
			}
		}
	}
}

// A test that the documents name is there: a fault that one is said to find is mended. What ends
// with _ is the beginning of several names.
func TestDocs_TestsAreThere(t *testing.T) {
	named := regexp.MustCompile("`((?:Test|Fuzz|Benchmark)[A-Z][A-Za-z0-9_]*)")
	there := testFunctions(t)
	for page, text := range documents(t) {
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			is := func(name string) bool {
				return name == m[1] || strings.HasSuffix(m[1], "_") && strings.HasPrefix(name, m[1])
			}
			if !slices.ContainsFunc(there, is) {
				t.Errorf("%s: there is no %s", page, m[1])
			}
		}
	}
}

// testFunctions are the names of all tests, and of what others call as one.
func testFunctions(t *testing.T) (names []string) {
	t.Helper()
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Benchmark)[A-Z]\w*)`)
	err := filepath.WalkDir(".", func(file string, _ fs.DirEntry, err error) error {
		if err != nil || path.Ext(file) != ".go" {
			return err
		}
		text, err := os.ReadFile(file)
		for _, m := range function.FindAllSubmatch(text, -1) {
			names = append(names, string(m[1]))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// Links between the documents lead somewhere.
func TestDocs_LinksResolve(t *testing.T) {
	for page, text := range documents(t) {
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			target := path.Join(path.Dir(page), m[1])
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s: link to %s: %v", page, m[1], err)
			} else if m[2] != "" && !slices.Contains(anchors(t, target), m[2]) {
				t.Errorf("%s: %s has no heading %s (it has %v)", page, m[1], m[2], anchors(t, target))
			}
		}
	}
}
