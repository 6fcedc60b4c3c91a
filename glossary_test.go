package rawlane_test

import (
	"go/ast"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// refusal is a word that docs/glossary.md refuses in a folder, and the word to use.
type refusal struct{ folder, word, instead string }

// refusals reads the tables of docs/glossary.md: the folder from the heading, the words from the last
// column.
func refusals(t *testing.T) (all []refusal) {
	text, err := os.ReadFile("docs/glossary.md")
	if err != nil {
		t.Fatal(err)
	}
	code := regexp.MustCompile("`([^`]+)`")
	var folders []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "## ") {
			folders = nil
			for _, m := range code.FindAllStringSubmatch(line, -1) {
				folders = append(folders, m[1])
			}
			continue
		}
		cells := strings.Split(strings.TrimSpace(line), "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") || strings.TrimSpace(cells[3]) == "refused" {
			continue
		}
		for word := range strings.SplitSeq(cells[3], ",") {
			if word = strings.TrimSpace(word); word == "" {
				continue
			}
			for _, f := range folders {
				all = append(all, refusal{f, word, strings.TrimSpace(cells[1])})
			}
		}
	}
	if len(all) < 50 {
		t.Fatalf("docs/glossary.md refuses %d words: is its format still the one that this test reads?", len(all))
	}
	return all
}

// camelWords splits "flushPendingNow" into flush, pending, now.
func camelWords(name string) (words []string) {
	start := 0
	for i, r := range name {
		if i > start && (unicode.IsUpper(r) || r == '_') {
			words = append(words, strings.ToLower(strings.Trim(name[start:i], "_")))
			start = i
		}
	}
	return append(words, strings.ToLower(strings.Trim(name[start:], "_")))
}

// declared calls f with each name that a file declares at package level, and each field and method.
func declared(file *ast.File, f func(*ast.Ident)) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncDecl:
			f(n.Name)
			return false
		case *ast.TypeSpec:
			f(n.Name)
		case *ast.ValueSpec:
			for _, name := range n.Names {
				f(name)
			}
		case *ast.Field:
			for _, name := range n.Names {
				f(name)
			}
		}
		return true
	})
}

func TestGlossary_OldWordsAreRefused(t *testing.T) {
	words := refusals(t)
	files, set := sources(t)
	for _, file := range files {
		declared(file.syntax, func(name *ast.Ident) {
			parts := camelWords(name.Name)
			for _, r := range words {
				inside := r.folder == "." || file.dir == r.folder || strings.HasPrefix(file.dir, r.folder+"/")
				if inside && hasWords(parts, camelWords(r.word)) {
					t.Errorf("%v: %s: the glossary says %q, not %q", set.Position(name.Pos()), name.Name, r.instead, r.word)
				}
			}
		})
	}
}

// hasWords reports whether the words of an old name stand in a name, in sequence.
func hasWords(name, old []string) bool {
	for i := 0; i+len(old) <= len(name); i++ {
		if slices.Equal(name[i:i+len(old)], old) {
			return true
		}
	}
	return false
}

// persons are words for people: a node, a caller or a reader is not a he.
var persons = regexp.MustCompile(`(?i)\b(he|she|his|him|her|whoever|whom)\b`)

const (
	maxCommentColumns = 100 // a tab counts 4
	maxCodeColumns    = 120
)

func TestComments_PlainAndShort(t *testing.T) {
	files, set := sources(t)
	for _, file := range files {
		for _, group := range file.syntax.Comments {
			for _, c := range group.List {
				if m := persons.FindString(c.Text); m != "" {
					t.Errorf("%v: %q in a comment: name the thing", set.Position(c.Pos()), m)
				}
			}
		}
	}
}

func TestLines_Short(t *testing.T) {
	files, _ := sources(t)
	for _, file := range files {
		name := file.dir + "/" + file.name
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			line = strings.TrimRight(line, "\n")
			if strings.HasPrefix(line, "//go:") {
				continue // a directive is one line
			}
			limit := maxCodeColumns
			if strings.HasPrefix(strings.TrimLeft(line, "\t "), "//") {
				limit = maxCommentColumns
			}
			if columns := len([]rune(strings.ReplaceAll(line, "\t", "    "))); columns > limit && !strings.Contains(line, "://") {
				t.Errorf("%s:%d: %d columns (want at most %d)", name, number, columns, limit)
			}
		}
	}
}
