package rawlane_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"testing"
)

// names are what a package exports: for each name, the fields of the struct that it is, if it is one.
type names map[string][]string

// exported returns the names of all public packages, by the last element of their paths.
func exported(t *testing.T) map[string]names {
	t.Helper()
	packages := map[string]names{}
	files, _ := sources(t)
	for _, f := range files {
		if private.MatchString(f.dir) {
			continue
		}
		all := packages[path.Base(f.dir)]
		if all == nil {
			all = names{}
			packages[path.Base(f.dir)] = all
		}
		for _, d := range f.syntax.Decls {
			switch d := d.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					all[d.Name.Name] = nil
				}
			case *ast.GenDecl:
				for _, s := range d.Specs {
					all.add(s)
				}
			}
		}
	}
	return packages
}

// add adds what a declaration declares.
func (all names) add(s ast.Spec) {
	switch s := s.(type) {
	case *ast.ValueSpec:
		for _, n := range s.Names {
			all[n.Name] = nil
		}
	case *ast.TypeSpec:
		all[s.Name.Name] = nil
		st, ok := s.Type.(*ast.StructType)
		if !ok {
			return
		}
		for _, f := range st.Fields.List {
			for _, n := range f.Names {
				all[s.Name.Name] = append(all[s.Name.Name], n.Name)
			}
			if len(f.Names) == 0 {
				all[s.Name.Name] = append(all[s.Name.Name], embedded(f.Type))
			}
		}
	}
}

// embedded is the name of the field that a type without a name makes.
func embedded(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return embedded(e.X)
	case *ast.SelectorExpr:
		return e.Sel.Name
	case *ast.Ident:
		return e.Name
	}
	return ""
}

var (
	// goBlock is a program, or a part of one, in a document.
	goBlock = regexp.MustCompile("(?ms)^```go\n(.*?)^```$")
	// dots stand for what a document leaves out.
	dots = regexp.MustCompile(`(?m)^\s*\.\.\.$|…`)
)

// parseSnippet parses a file, declarations or statements.
func parseSnippet(text string) (f *ast.File, err error) {
	text = dots.ReplaceAllString(text, "")
	for _, whole := range []string{text, "package p\n" + text, "package p\nfunc _() {\n" + text + "\n}"} {
		if f, err = parser.ParseFile(token.NewFileSet(), "", whole, parser.SkipObjectResolution); err == nil {
			return f, nil
		}
	}
	return nil, err
}

// What programs in the documents name of a package is there, and so are the fields that they set.
func TestDocs_ProgramsNameWhatIsThere(t *testing.T) {
	packages := exported(t)
	found := 0
	for page, text := range documents(t) {
		for _, m := range goBlock.FindAllStringSubmatch(text, -1) {
			f, err := parseSnippet(m[1])
			if err != nil {
				t.Errorf("%s: %v in\n%s", page, err, m[1])
				continue
			}
			variables := assigned(f)
			ast.Inspect(f, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.SelectorExpr:
					if all, name := ofPackage(packages, variables, n); all != nil {
						found++
						if _, ok := all[name]; !ok {
							t.Errorf("%s: there is no %s.%s", page, n.X, name)
						}
					}
				case *ast.CompositeLit:
					if all, name := ofPackage(packages, variables, n.Type); all != nil {
						for _, key := range keys(n) {
							if !slices.Contains(all[name], key) {
								t.Errorf("%s: %s has no field %s that a literal could set", page, name, key)
							}
						}
					}
				}
				return true
			})
		}
	}
	if found < 50 {
		t.Errorf("found %d names in all programs: are they still what this test reads?", found)
	}
}

// ofPackage returns what e names of one of our packages, and what else that exports; nil of others,
// and of variables.
func ofPackage(packages map[string]names, variables []string, e ast.Expr) (all names, name string) {
	s, ok := e.(*ast.SelectorExpr)
	if !ok {
		return nil, ""
	}
	x, ok := s.X.(*ast.Ident)
	if !ok || slices.Contains(variables, x.Name) {
		return nil, ""
	}
	return packages[x.Name], s.Sel.Name
}

// keys are the names of the fields that a literal sets.
func keys(lit *ast.CompositeLit) (all []string) {
	for _, e := range lit.Elts {
		if kv, ok := e.(*ast.KeyValueExpr); ok {
			if key, ok := kv.Key.(*ast.Ident); ok {
				all = append(all, key.Name)
			}
		}
	}
	return all
}

// assigned are the names of variables.
func assigned(f *ast.File) (variables []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok {
			for _, e := range a.Lhs {
				if x, ok := e.(*ast.Ident); ok {
					variables = append(variables, x.Name)
				}
			}
		}
		return true
	})
	return variables
}
