package rawlane_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/rawlane/rawlane"

// verbImports is what a family of the command's verbs may import: the library and the packages that
// all families share. No family imports another one.
var verbImports = []string{
	"cmd/rawlane/internal/cli", "cmd/rawlane/internal/launch", "bench/gonet", "bench/mpi", "bench/programs",
	"barrier/...", "cluster/...", "internal/...", "mcd/...", "memfifo/...", "mpi/...", "rawnet/...", "rpc/...",
	"sim/...", "transport/...", "vlan/...",
}

// public is what a program elsewhere may import: each example can be copied out as it is.
var public = []string{
	"barrier", "cluster", "cluster/start", "examples/bothways", "examples/npb", "mcd", "mcd/mcdtest", "memfifo", "mpi", "rawnet", "rpc",
	"transport", "transport/fabric", "transport/ring", "vlan", "vlan/optimize", "vlan/plan", "vlan/topology", "vlan/traffic",
}

// floors is the house of docs/architecture.md. A package imports from its own list alone; a test
// may import anything. A prefix ending in /... covers a folder and what is in it; the longest
// prefix counts.
var floors = []struct {
	prefix  string
	imports []string
}{
	{"cmd/rawlane", []string{"cmd/rawlane/internal/..."}},
	{"cmd/rawlane/internal/cli", []string{"internal/outfile", "mcd", "barrier/schedule", "vlan/plan", "vlan/topology"}},
	{"cmd/rawlane/internal/...", verbImports},
	{"cmd/rawlane/internal/cli/clitest", []string{"cmd/rawlane/internal/cli"}},
	{"examples/...", public},
	{"bench/...", []string{"..."}},
	{"cluster/...", []string{"mcd", "transport", "transport/udp", "internal/monotime", "internal/clock", "internal/standstill",
		"internal/incarnation", "cluster/..."}},
	{"cluster/decode", []string{"cluster", "cluster/internal/...", "mcd/decode", "transport"}},
	{"cluster/internal/wire", nil},
	{"cluster/start", []string{"cluster", "cluster/start/internal/pmi", "internal/standstill", "mcd", "transport", "transport/..."}},
	{"cluster/start/internal/pmi", nil},
	{"cluster/start/internal/pmi/pmitest", []string{"cluster/start/internal/pmi"}},
	{"barrier", []string{"barrier/schedule", "barrier/internal/...", "mcd", "transport", "internal/monotime", "internal/clock", "internal/incarnation"}},
	{"barrier/decode", []string{"barrier", "barrier/internal/engine", "mcd/decode"}},
	{"barrier/internal/slot", []string{"transport"}},
	{"barrier/internal/slot/slottest", []string{"barrier/internal/slot"}},
	{"barrier/offload", []string{"barrier/internal/slot", "barrier/offload/internal/program", "transport", "internal/afpacket", "internal/afxdp", "internal/monotime", "internal/clock", "internal/room", "internal/xsk"}},
	{"barrier/offload/internal/program", []string{"barrier/internal/slot", "internal/room"}},
	{"barrier/schedule", []string{"internal/monotime", "internal/timewheel"}},
	{"barrier/internal/agreement", []string{"internal/monotime"}},
	{"barrier/internal/engine", []string{"barrier/internal/agreement", "barrier/schedule", "internal/congestion", "internal/monotime"}},
	{"memfifo", []string{"memfifo/internal/...", "mcd", "transport", "internal/monotime", "internal/clock", "internal/standstill", "internal/incarnation", "internal/list", "internal/race"}},
	{"memfifo/internal/reliable", []string{"internal/congestion", "internal/monotime"}},
	{"memfifo/internal/wire", nil},
	{"memfifo/decode", []string{"memfifo", "memfifo/internal/...", "mcd/decode"}},
	{"rawnet", []string{"rawnet/internal/...", "memfifo", "mcd", "transport", "internal/activemsg", "internal/incarnation", "internal/standstill"}},
	{"rawnet/internal/mux", []string{"internal/list"}},
	{"rawnet/internal/wire", nil},
	{"rawnet/decode", []string{"rawnet", "rawnet/internal/...", "memfifo/decode", "mcd/decode", "internal/activemsg"}},
	{"rpc", []string{"rpc/internal/wire", "memfifo", "mcd", "internal/activemsg", "internal/incarnation", "internal/standstill"}},
	{"rpc/internal/wire", nil},
	{"rpc/decode", []string{"rpc", "rpc/internal/wire", "memfifo/decode", "mcd/decode", "internal/activemsg"}},
	{"mpi", []string{"mpi/internal/...", "barrier", "memfifo", "mcd", "transport", "internal/activemsg", "internal/incarnation"}},
	{"mpi/internal/matching", nil},
	{"mpi/internal/consensus", nil},
	{"mpi/internal/layout", nil},
	{"mpi/internal/workers", nil},
	{"mpi/internal/wire", []string{"mpi/internal/consensus", "mpi/internal/matching"}},
	{"mcd", []string{"mcd/internal/...", "mcd/keyring", "vlan", "transport", "internal/monotime", "internal/clock", "internal/incarnation", "internal/list", "internal/prefetch", "internal/race", "internal/hrtimer", "internal/tokenbucket"}},
	{"mcd/decode", []string{"mcd/internal/wire", "transport"}},
	{"mcd/mcdtest", []string{"mcd", "transport", "transport/fabric"}},
	{"mcd/internal/wire", []string{"internal/crc32c"}},
	{"mcd/internal/auth", []string{"mcd/internal/wire", "transport", "internal/monotime", "internal/tokenbucket"}},
	{"mcd/keyring", nil},
	{"vlan", []string{"transport"}},
	{"vlan/topology", []string{"vlan/internal/strictyaml", "transport", "internal/prng"}},
	{"vlan/plan", []string{"vlan", "vlan/topology", "vlan/internal/strictyaml", "transport"}},
	{"vlan/traffic", []string{"vlan/plan", "vlan/topology", "vlan/internal/strictyaml", "transport", "internal/prng"}},
	{"vlan/optimize", []string{"vlan/plan", "vlan/topology", "vlan/traffic", "transport", "internal/prng"}},
	{"vlan/control", []string{"vlan/optimize", "vlan/plan", "vlan/topology", "vlan/traffic", "transport", "internal/monotime"}},
	{"vlan/internal/strictyaml", nil},
	{"vlan/internal/vlantest", []string{"vlan/plan", "vlan/topology", "vlan/traffic", "transport"}},
	{"vlan/manager", []string{"vlan", "vlan/plan", "vlan/manager/api", "transport", "internal/standstill", "internal/unixsocket"}},
	{"vlan/manager/api", []string{"vlan", "vlan/plan", "vlan/manager/internal/rib", "transport"}},
	{"vlan/manager/coordinator", []string{"vlan/control", "vlan/plan", "vlan/topology", "vlan/manager", "vlan/manager/api", "transport", "internal/clock", "internal/monotime"}},
	{"vlan/manager/failover", []string{"vlan", "vlan/control", "vlan/manager/...", "mcd", "transport", "internal/monotime", "internal/clock"}},
	{"vlan/manager/server", []string{"vlan", "vlan/plan", "vlan/topology", "vlan/manager/api", "vlan/manager/internal/rib", "transport", "internal/outfile", "internal/filelock", "internal/room", "internal/unixsocket"}},
	{"vlan/manager/internal/managertest", []string{"vlan", "vlan/plan", "vlan/manager", "vlan/manager/server", "transport"}},
	{"vlan/manager/internal/rib", []string{"vlan", "vlan/plan", "transport"}},
	{"sim", []string{"internal/impair", "internal/monotime", "internal/prng", "internal/timewheel"}},
	{"sim/explore", []string{"internal/monotime"}},
	{"sim/cenju", nil},
	{"sim/ether", []string{"sim", "vlan/plan", "vlan/topology", "transport", "internal/congestion", "internal/l2switch", "internal/monotime", "internal/prng"}},
	{"sim/internal/csmacd", []string{"internal/prng"}},
	{"sim/mbcf", []string{"sim/internal/csmacd"}},
	{"sim/mcd", []string{"barrier/schedule", "sim", "sim/internal/csmacd", "internal/monotime", "internal/prng"}},
	{"sim/vbft", []string{"sim", "sim/ether", "vlan/...", "transport", "internal/monotime", "internal/prng"}},
	{"transport", nil},
	{"transport/fabric", []string{"transport", "internal/l2switch", "internal/monotime", "internal/clock"}},
	{"transport/fault", []string{"transport", "internal/impair", "internal/monotime", "internal/clock", "internal/prng"}},
	{"transport/...", []string{"transport", "internal/afpacket", "internal/monotime", "internal/clock"}},
	{"transport/packet", []string{"transport", "transport/grant", "internal/afpacket", "internal/netpoll", "internal/timestamping"}},
	{"transport/ring", []string{"transport", "transport/grant", "internal/afpacket", "internal/netpoll"}},
	{"transport/xdp", []string{"transport", "transport/grant", "internal/afpacket", "internal/afxdp", "internal/netpoll", "internal/prefetch", "internal/xdpprog", "internal/xsk"}},
	{"transport/shm", []string{"transport", "transport/shm/internal/...", "internal/filelock", "internal/joins", "internal/netpoll", "internal/unixsocket"}},
	{"transport/shm/internal/hello", []string{"transport", "transport/shm/internal/records"}},
	{"transport/shm/internal/records", []string{"transport"}},
	{"transport/udp", []string{"transport", "internal/clock", "internal/joins", "internal/netpoll", "internal/timestamping", "internal/tokenbucket"}},
	{"transport/grant", []string{"transport", "transport/grant/internal/...", "internal/afpacket", "internal/unixsocket", "internal/xsk"}},
	{"transport/grant/internal/...", []string{"transport"}},
	{"transport/grant/server", []string{"transport", "transport/grant/internal/...", "internal/afpacket", "internal/afxdp", "internal/unixsocket", "internal/xdpprog", "internal/xsk"}},
	{"internal/activemsg", []string{"memfifo", "mcd"}},
	{"internal/afpacket", []string{"transport", "internal/clock", "internal/joins", "internal/monotime", "internal/netpoll", "internal/room", "internal/timestamping", "internal/tokenbucket"}},
	{"internal/afxdp", []string{"transport", "internal/afpacket", "internal/room", "internal/xdpprog", "internal/xsk"}},
	{"internal/joins", []string{"transport"}},
	{"internal/netpoll", []string{"transport", "internal/clock", "internal/monotime"}},
	{"internal/tokenbucket", nil},
	{"internal/xdpprog", []string{"internal/room", "transport"}},
	{"internal/xsk", nil},
	{"internal/unixsocket", []string{"internal/filelock"}},
	{"internal/l2switch", []string{"transport", "internal/monotime"}},
	{"internal/congestion", nil},
	{"internal/decodetest", []string{"mcd/decode"}},
	{"internal/cpuset", nil},
	{"internal/crc32c", nil},
	{"internal/fuzzseed", nil},
	{"internal/outfile", nil},
	{"internal/filelock", nil},
	{"internal/kernellink", []string{"internal/testbed", "transport", "transport/linktest"}},
	{"internal/list", nil},
	{"internal/lives", []string{"mcd", "transport", "transport/fabric"}},
	{"internal/noreturn", nil},
	{"internal/prefetch", nil},
	{"internal/race", nil},
	{"internal/prng", nil},
	{"internal/procgroup", nil},
	{"internal/hrtimer", []string{"internal/clock", "internal/monotime"}},
	{"internal/incarnation", nil},
	{"internal/impair", []string{"internal/prng"}},
	{"internal/monotime", nil},
	{"internal/simfault", []string{"sim"}},
	{"internal/standstill", []string{"internal/clock", "internal/monotime"}},
	{"internal/standstill/standstilltest", nil},
	{"internal/timestamping", []string{"transport"}},
	{"internal/timewheel", []string{"internal/monotime"}},
	{"internal/transcript", []string{"internal/monotime"}},
	{"internal/clock", []string{"internal/monotime"}},
	{"internal/room", nil},
	{"internal/testbed", []string{"internal/room", "transport"}},
}

// cores compute: time, chance and frames come to them as arguments.
var cores = []string{
	"mcd/internal/wire", "mcd/internal/auth", "internal/l2switch", "internal/monotime", "internal/prng", "internal/congestion",
	"internal/impair", "internal/timewheel",
	"vlan/topology", "vlan/plan", "vlan/traffic", "vlan/optimize", "vlan/control", "vlan/manager/internal/rib",
	"cluster/internal/discovery", "cluster/internal/wire", "barrier/schedule", "barrier/internal/agreement", "barrier/internal/engine", "sim", "sim/cenju", "sim/ether", "sim/internal/csmacd", "sim/mbcf", "sim/mcd", "sim/vbft",
	"memfifo/internal/reliable", "memfifo/internal/wire", "rawnet/internal/mux", "rawnet/internal/wire", "rpc/internal/wire",
	"mpi/internal/consensus", "mpi/internal/layout", "mpi/internal/matching", "mpi/internal/wire",
	"transport/grant/internal/rules", "transport/grant/internal/protocol",
	"transport/shm/internal/hello", "transport/shm/internal/records",
}

var forbiddenInCores = []string{"net", "os", "sync", "context", "syscall", "math/rand", "math/rand/v2", module + "/internal/clock"}

var forbiddenNames = []string{"util", "utils", "common", "types", "helpers", "helper", "interfaces", "misc"}

type sourceFile struct {
	dir, name string
	syntax    *ast.File
}

// sources parses the module's Go files, tests excepted.
func sources(t *testing.T) (files []sourceFile, set *token.FileSet) {
	set = token.NewFileSet()
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && name != "." && (strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata") {
			return fs.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		f, err := parser.ParseFile(set, name, nil, parser.ParseComments)
		files = append(files, sourceFile{filepath.ToSlash(filepath.Dir(name)), filepath.Base(name), f})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(files) < 20 {
		t.Fatalf("found %d files: is this the module's root?", len(files))
	}
	return files, set
}

func matches(pattern, dir string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "..."); ok {
		return strings.HasPrefix(dir+"/", prefix)
	}
	return pattern == dir
}

// allowed returns what a package may import of ours.
func allowed(dir string) (imports []string, known bool) {
	longest := -1
	for _, f := range floors {
		if n := len(strings.TrimSuffix(f.prefix, "...")); matches(f.prefix, dir) && n > longest {
			longest, imports, known = n, f.imports, true
		}
	}
	return imports, known
}

func TestImportsGoDown(t *testing.T) {
	files, set := sources(t)
	for _, f := range files {
		may, known := allowed(f.dir)
		if !known && f.dir != "." {
			t.Errorf("%s: the house has no room for this package: give it one in arch_test.go and docs/architecture.md", f.dir)
			continue
		}
		for _, spec := range f.syntax.Imports {
			target, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module+"/")
			if !ours || slices.ContainsFunc(may, func(p string) bool { return matches(p, target) }) {
				continue
			}
			t.Errorf("%v: %s may not import %s (it may import %v)", set.Position(spec.Pos()), f.dir, target, may)
		}
	}
}

func isCore(dir string) bool { return slices.Contains(cores, dir) }

func TestCoresDoNoIO(t *testing.T) {
	files, set := sources(t)
	for _, f := range files {
		if !isCore(f.dir) {
			continue
		}
		for _, spec := range f.syntax.Imports {
			if p := strings.Trim(spec.Path.Value, `"`); slices.Contains(forbiddenInCores, p) {
				t.Errorf("%v: %s is a core and may not import %s", set.Position(spec.Pos()), f.dir, p)
			}
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.GoStmt:
				t.Errorf("%v: a core starts no goroutine", set.Position(n.Pos()))
			case *ast.ChanType:
				t.Errorf("%v: a core has no channel", set.Position(n.Pos()))
			case *ast.SelectorExpr:
				if x, ok := n.X.(*ast.Ident); ok && x.Name == "time" && slices.Contains([]string{"Now", "Since", "Sleep", "After", "NewTimer"}, n.Sel.Name) {
					t.Errorf("%v: a core does not know what time it is", set.Position(n.Pos()))
				}
			}
			return true
		})
	}
}

func TestNamesSayWhatIsInside(t *testing.T) {
	files, _ := sources(t)
	for _, f := range files {
		for _, name := range []string{path.Base(f.dir), strings.TrimSuffix(f.name, ".go")} {
			if slices.Contains(forbiddenNames, name) {
				t.Errorf("%s/%s: %q says nothing about what is inside", f.dir, f.name, name)
			}
		}
	}
}

// The library's own packages are Go alone: cgo would take cross-compiling and static binaries from
// its users.
func TestNoCgo(t *testing.T) {
	files, set := sources(t)
	for _, f := range files {
		for _, spec := range f.syntax.Imports {
			if spec.Path.Value == `"C"` {
				t.Errorf("%v: import \"C\"", set.Position(spec.Pos()))
			}
		}
	}
}

// Every exported name has a doc comment, except methods that a well-known interface asks for.
func TestExportedNamesAreDocumented(t *testing.T) {
	files, set := sources(t)
	for _, f := range files {
		if strings.HasPrefix(f.dir, "cmd/") || f.syntax.Name.Name == "main" {
			continue
		}
		for _, d := range f.syntax.Decls {
			for _, name := range undocumented(d) {
				t.Errorf("%v: %s has no doc comment", set.Position(d.Pos()), name)
			}
		}
	}
}

var wellKnown = []string{"Error", "Is", "Unwrap", "String", "Read", "Write", "Close", "Len", "Less", "Swap"}

func undocumented(d ast.Decl) (names []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && !(d.Recv != nil && (slices.Contains(wellKnown, d.Name.Name) || !exportedReceiver(d))) {
			names = append(names, d.Name.Name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
					names = append(names, s.Name.Name)
				}
			case *ast.ValueSpec:
				for _, n := range s.Names {
					if n.IsExported() && d.Doc == nil && s.Doc == nil && s.Comment == nil {
						names = append(names, n.Name)
					}
				}
			}
		}
	}
	return names
}

func exportedReceiver(d *ast.FuncDecl) bool {
	t := d.Recv.List[0].Type
	if star, ok := t.(*ast.StarExpr); ok {
		t = star.X
	}
	if generic, ok := t.(*ast.IndexExpr); ok {
		t = generic.X
	}
	id, ok := t.(*ast.Ident)
	return ok && id.IsExported()
}
