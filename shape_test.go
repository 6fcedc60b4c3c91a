package rawlane_test

import (
	"go/ast"
	"go/doc"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// layers open on what is below them: Open(lower, Config) (*T, error), and T has Close() error.
var layers = []string{"transport/packet", "transport/ring", "transport/shm", "transport/xdp", "mcd", "barrier", "memfifo", "rawnet", "rpc"}

// machines are the cores that protocols run on: time comes in, sends come out.
var machines = []struct {
	dir, name string
	methods   []string
}{
	{"barrier/internal/engine", "Engine", []string{"Arrive", "Handle", "Advance", "Deadline"}},
	{"memfifo/internal/reliable", "Conn", []string{"Handle", "Advance", "Deadline"}},
	{"mcd/internal/auth", "Verifier", []string{"Handle", "Advance", "Deadline"}},
	{"cluster/internal/discovery", "Discovery", []string{"Handle", "Advance", "Deadline"}},
	{"vlan/control", "Failover", []string{"Advance", "Deadline"}},
	{"vlan/control", "Controller", []string{"Observe", "Advance", "Deadline"}},
}

// packageFiles groups the module's files by folder.
func packageFiles(t *testing.T) (dirs map[string][]sourceFile, set *token.FileSet) {
	files, set := sources(t)
	dirs = map[string][]sourceFile{}
	for _, f := range files {
		dirs[f.dir] = append(dirs[f.dir], f)
	}
	return dirs, set
}

// functions returns the functions of a package by name; a method's name is Type.Method.
func functions(files []sourceFile) map[string]*ast.FuncDecl {
	all := map[string]*ast.FuncDecl{}
	for _, f := range files {
		for _, d := range f.syntax.Decls {
			if fn, ok := d.(*ast.FuncDecl); ok {
				all[receiver(fn)+fn.Name.Name] = fn
			}
		}
	}
	return all
}

// receiver returns "Type." of a method, and "" of a function.
func receiver(fn *ast.FuncDecl) string {
	if fn.Recv == nil {
		return ""
	}
	return baseName(fn.Recv.List[0].Type) + "."
}

// baseName returns the name of a type behind pointers and type parameters.
func baseName(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return baseName(t.X)
	case *ast.IndexExpr:
		return baseName(t.X)
	case *ast.Ident:
		return t.Name
	case *ast.SelectorExpr:
		return baseName(t.X) + "." + t.Sel.Name
	}
	return ""
}

func TestShape_LayersOpenAndClose(t *testing.T) {
	dirs, _ := packageFiles(t)
	for _, dir := range layers {
		all := functions(dirs[dir])
		open := all["Open"]
		if open == nil {
			t.Errorf("%s has no Open (want Open(lower, Config) (*T, error))", dir)
			continue
		}
		hasConfig := slices.ContainsFunc(open.Type.Params.List, func(f *ast.Field) bool { return baseName(f.Type) == "Config" })
		results := open.Type.Results.List
		if !hasConfig || len(results) != 2 || baseName(results[1].Type) != "error" {
			t.Errorf("%s.Open: want Open(lower, Config) (*T, error)", dir)
			continue
		}
		if name := baseName(results[0].Type); all[name+".Close"] == nil {
			t.Errorf("%s.%s, which Open returns, has no Close", dir, name)
		}
	}
}

func TestShape_CoresKeepOneContract(t *testing.T) {
	dirs, _ := packageFiles(t)
	for _, m := range machines {
		all := functions(dirs[m.dir])
		for _, method := range m.methods {
			fn := all[m.name+"."+method]
			if fn == nil {
				t.Errorf("%s.%s has no method %s", m.dir, m.name, method)
				continue
			}
			if method == "Deadline" || method == "Observe" {
				continue
			}
			if first := fn.Type.Params.List[0]; baseName(first.Type) != "monotime.Time" {
				t.Errorf("%s.%s.%s: the first argument is no monotime.Time: a core is given the time", m.dir, m.name, method)
			}
		}
	}
}

// A registry of a whole process makes two of everything impossible.
func TestShape_NoProcessWideState(t *testing.T) {
	dirs, set := packageFiles(t)
	for dir, files := range dirs {
		for _, f := range files {
			for _, spec := range f.syntax.Imports {
				if spec.Path.Value == `"weak"` {
					t.Errorf("%v: weak pointers keep a registry: open what is shared, and close it", set.Position(spec.Pos()))
				}
			}
			if strings.HasPrefix(dir, "cmd/") {
				continue
			}
			for _, d := range f.syntax.Decls {
				if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.VAR {
					forbidSync(t, set, g, "a variable of the package: state belongs to what Open returns")
				}
			}
		}
	}
}

// A lock is its owner's: no exported field, parameter or result is one.
func TestShape_NoLockInTheAPI(t *testing.T) {
	dirs, set := packageFiles(t)
	for _, files := range dirs {
		for _, f := range files {
			ast.Inspect(f.syntax, func(n ast.Node) bool {
				switch n := n.(type) {
				case *ast.FuncDecl:
					if n.Name.IsExported() {
						forbidSync(t, set, n.Type, "in the signature of "+n.Name.Name)
					}
					return false
				case *ast.StructType:
					for _, field := range n.Fields.List {
						if len(field.Names) > 0 && field.Names[0].IsExported() {
							forbidSync(t, set, field.Type, "field "+field.Names[0].Name)
						}
					}
				}
				return true
			})
		}
	}
}

func forbidSync(t *testing.T, set *token.FileSet, n ast.Node, where string) {
	t.Helper()
	ast.Inspect(n, func(n ast.Node) bool {
		if _, body := n.(*ast.FuncLit); body {
			return false
		}
		if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains([]string{"sync.Mutex", "sync.RWMutex", "sync.Map", "sync.Locker"}, baseName(s)) {
			t.Errorf("%v: %s %s", set.Position(s.Pos()), baseName(s), where)
		}
		return true
	})
}

const (
	maxFileLines     = 500
	maxFunctionLines = 70
	twoScreens       = 110 // lines of "go doc PACKAGE"
	threeScreens     = 165
)

func TestShape_FilesAndFunctionsAreShort(t *testing.T) {
	dirs, set := packageFiles(t)
	for _, files := range dirs {
		for _, f := range files {
			if n := set.Position(f.syntax.End()).Line; n > maxFileLines {
				t.Errorf("%s/%s: %d lines (want at most %d): which second thing lives there?", f.dir, f.name, n, maxFileLines)
			}
			for _, d := range f.syntax.Decls {
				fn, ok := d.(*ast.FuncDecl)
				if !ok {
					continue
				}
				if n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1; n > maxFunctionLines {
					t.Errorf("%v: %s has %d lines (want at most %d)", set.Position(fn.Pos()), fn.Name.Name, n, maxFunctionLines)
				}
			}
		}
	}
}

// What a package exports can be taken in at once.
func TestShape_PackagesFitTwoScreens(t *testing.T) {
	dirs, set := packageFiles(t)
	for dir, files := range dirs {
		if slices.Contains(strings.Split(dir, "/"), "internal") || files[0].syntax.Name.Name == "main" {
			continue
		}
		var parsed []*ast.File
		for _, f := range files {
			parsed = append(parsed, f.syntax)
		}
		p, err := doc.NewFromFiles(set, parsed, path.Join(module, dir))
		if err != nil {
			t.Fatal(err)
		}
		lines := 2 + strings.Count(p.Doc, "\n") + 1 + len(p.Consts) + len(p.Vars) + len(p.Funcs)
		for _, ty := range p.Types {
			lines += 1 + len(ty.Consts) + len(ty.Vars) + len(ty.Funcs)
		}
		most := twoScreens
		if dir == "mpi" { // has MPI's names, each of which its users look for
			most = threeScreens
		}
		if lines > most {
			t.Errorf("%s: go doc prints %d lines (want at most %d)", dir, lines, most)
		}
	}
}
