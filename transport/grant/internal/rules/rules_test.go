package rules

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/transport"
)

// names are the users and groups of these tests.
var names = Lookup{
	User:  func(name string) (uint32, error) { return find(name, "alice", 1001, "bob", 1002) },
	Group: func(name string) (uint32, error) { return find(name, "hpc", 2001, "lab", 2002) },
}

func find(name string, known ...any) (uint32, error) {
	for i := 0; i < len(known); i += 2 {
		if known[i] == name {
			return uint32(known[i+1].(int)), nil
		}
	}
	return 0, errors.New("unknown")
}

func parse(t *testing.T, text string) *Rules {
	t.Helper()
	r, err := Parse("grants", []byte(text), names)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const ours = transport.EtherTypeDefault

var (
	alice  = Peer{UID: 1001, Groups: []uint32{100}}
	bob    = Peer{UID: 1002, Groups: []uint32{100, 2001}}
	nobody = Peer{UID: 65534, Groups: []uint32{65534}}
)

func TestScopes(t *testing.T) {
	r := parse(t, `
# who may what
allow user alice  interface eth0       cluster 7       ports 0-99,253-255
allow group hpc   interface eth0,eth1  cluster 1-100,0x200 ports any  # all ports
allow user 65534  interface any        cluster any     ports 5        ethertype 0x88b6
allow any         interface lab0       cluster 1       ports 1
`)
	for _, c := range []struct {
		name      string
		who       Peer
		ifname    string
		etherType transport.EtherType
		want      string
	}{
		{"a user", alice, "eth0", ours, "[7:0-99,253-255]"},
		{"a user on another interface", alice, "eth1", ours, "[]"},
		{"a user by another EtherType", alice, "eth0", 0x88b6, "[]"},
		{"a member of a group", bob, "eth1", ours, "[1-100:any 512:any]"},
		{"a group is not a user of its number", Peer{UID: 2001, Groups: []uint32{1001}}, "eth0", ours, "[]"},
		{"a number, on any interface", nobody, "eth9", 0x88b6, "[any:5]"},
		{"anybody", nobody, "lab0", ours, "[1:1]"},
		{"anybody else", alice, "lab0", ours, "[1:1]"},
		{"an interface whose name begins so", alice, "eth", ours, "[]"},
	} {
		if got := fmt.Sprint(r.Scopes(c.who, c.ifname, c.etherType)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
	if got := r.GroupsOn("eth1", ours, false); !slices.Equal(got, []string{"hpc"}) {
		t.Errorf("groups on eth1: %v", got)
	}
	for _, none := range [][]string{
		r.GroupsOn("eth2", ours, false), r.GroupsOn("eth1", 0x88b6, false), r.GroupsOn("lab0", ours, false), r.GroupsOn("eth1", ours, true),
	} {
		if len(none) != 0 {
			t.Errorf("groups where none is allowed: %v", none)
		}
	}
	twice := parse(t, strings.Repeat("allow group lab interface any cluster 1 ports any\nallow group hpc interface any cluster 1 ports any\n", 2))
	if got := twice.GroupsOn("eth1", ours, false); !slices.Equal(got, []string{"hpc", "lab"}) {
		t.Errorf("groups of two lines each: %v", got)
	}
}

// Link xdp is allowed by lines that say so alone.
func TestXDPScopes(t *testing.T) {
	r := parse(t, `
allow user alice  interface eth0  cluster 7  ports 1
allow user alice  interface eth0  cluster 8  ports 2  xdp yes
allow user alice  interface eth0  cluster 9  ports 3  xdp no
allow group hpc   interface eth1  cluster 1  ports 4  ethertype 0x88b6 xdp yes
`)
	for _, c := range []struct {
		name      string
		who       Peer
		ifname    string
		etherType transport.EtherType
		any, xdp  string
	}{
		{"a user", alice, "eth0", ours, "[7:1 8:2 9:3]", "[8:2]"},
		{"on another interface", alice, "eth1", ours, "[]", "[]"},
		{"a group, by another EtherType", bob, "eth1", 0x88b6, "[1:4]", "[1:4]"},
		{"a group", bob, "eth1", ours, "[]", "[]"},
	} {
		if got := fmt.Sprint(r.Scopes(c.who, c.ifname, c.etherType)); got != c.any {
			t.Errorf("%s: %s, want %s", c.name, got, c.any)
		}
		if got := fmt.Sprint(r.XDPScopes(c.who, c.ifname, c.etherType)); got != c.xdp {
			t.Errorf("%s by link xdp: %s, want %s", c.name, got, c.xdp)
		}
	}
	if got := r.GroupsOn("eth1", 0x88b6, true); !slices.Equal(got, []string{"hpc"}) {
		t.Errorf("groups that may use link xdp: %v", got)
	}
}

func TestScopeHas(t *testing.T) {
	s := parse(t, "allow any interface any cluster 3-4 ports 2,10-20").Scopes(alice, "x", ours)[0]
	for _, c := range []struct {
		cluster uint32
		port    uint8
		want    bool
	}{{2, 2, false}, {3, 2, true}, {4, 20, true}, {5, 20, false}, {3, 1, false}, {3, 3, false}, {3, 9, false}, {3, 10, true}, {3, 21, false}} {
		if s.Has(c.cluster, c.port) != c.want {
			t.Errorf("cluster %d port %d: %v, want %v", c.cluster, c.port, !c.want, c.want)
		}
	}
}

func TestNarrow(t *testing.T) {
	all := parse(t, "allow any interface any cluster 3-4,9 ports 2\nallow any interface any cluster 4 ports 7").Scopes(alice, "x", ours)
	for cluster, want := range map[uint32]string{2: "[]", 3: "[3:2]", 4: "[4:2 4:7]", 9: "[9:2]"} {
		if got := fmt.Sprint(Narrow(all, cluster)); got != want {
			t.Errorf("cluster %d: %s, want %s", cluster, got, want)
		}
	}
}

func TestLimit(t *testing.T) {
	r := parse(t, `
limit any        links 4   memory 16M
limit group hpc  links 8   memory 1K
limit group lab  links 2   memory 1G
limit user bob   links 0   memory 5
`)
	in := func(uid uint32, groups ...uint32) Peer { return Peer{uid, groups} }
	for _, c := range []struct {
		name string
		who  Peer
		want Limit
	}{
		{"no line of one's own", in(1), Limit{4, 16 << 20}},
		{"one group", in(1, 2001), Limit{8, 1024}},
		{"two groups: the larger of each", in(1, 2002, 2001), Limit{8, 1 << 30}},
		{"a user's own line counts alone", in(1002, 2001, 2002), Limit{0, 5}},
	} {
		if got := r.Limit(c.who); got != c.want {
			t.Errorf("%s: %+v, want %+v", c.name, got, c.want)
		}
	}
	reversed := parse(t, "limit user bob links 1 memory 1\nlimit group hpc links 9 memory 9\nlimit any links 9 memory 9")
	if got := reversed.Limit(in(1002, 2001)); got != (Limit{1, 1}) {
		t.Errorf("the order of lines counts: %+v", got)
	}
	if got := parse(t, "limit user alice links 1 memory 1").Limit(in(7)); got != DefaultLimit || got.Links != 16 || got.Memory != 64<<20 {
		t.Errorf("no line: %+v, want the default", got)
	}
}

// The limit of all users together is nobody's own, whatever else the file limits.
func TestTotal(t *testing.T) {
	if got := parse(t, "limit any links 1 memory 1").Total(); got != DefaultTotal || got.Links != 4096 || got.Memory != 1<<30 {
		t.Errorf("no line: %+v, want the default", got)
	}
	for _, text := range []string{
		"limit total links 7 memory 9M\n", "limit total links 7 memory 9M\nlimit any links 2 memory 3\n", "limit any links 2 memory 3\nlimit total links 7 memory 9M\n",
	} {
		r := parse(t, text)
		want := DefaultLimit
		if strings.Contains(text, "any") {
			want = Limit{2, 3}
		}
		if got := r.Total(); got != (Limit{7, 9 << 20}) || r.Limit(alice) != want {
			t.Errorf("%s: %+v together, and %+v for one, want %+v", text, got, r.Limit(alice), want)
		}
		if again := parse(t, r.String()); again.Total() != r.Total() || again.String() != r.String() {
			t.Errorf("%s is printed as %s", text, r)
		}
	}
}

const good = "allow user alice interface eth0 cluster 7 ports 9"

// wrongLines are lines that are refused, and why.
var wrongLines = map[string]string{
	"deny user alice": `"deny": want allow or limit`,
	"allow":           `"": want user NAME, group NAME or any`,
	"allow alice interface eth0 cluster 7 ports 9": `"alice": want user NAME, group NAME or any`,
	"allow user":  "user: no name",
	"allow group": "group: no name",
	"allow user carol interface eth0 cluster 7 ports 9":          "user carol: unknown",
	"allow group alice interface eth0 cluster 7 ports 9":         "group alice: unknown",
	"allow user -1 interface eth0 cluster 7 ports 9":             "user -1: unknown",
	"allow user 4294967296 interface eth0 cluster 7 ports 9":     "user 4294967296: unknown",
	"allow user alice cluster 7 ports 9":                         `"cluster": want interface here`,
	"allow user alice interface":                                 "interface: no value",
	"allow user alice interface eth0,":                           `interface "eth0,": want names`,
	"allow user alice interface any,eth0 cluster 7 ports 9":      `interface "any,eth0": want names`,
	"allow user alice interface eth* cluster 7 ports 9":          `interface "eth*": want names`,
	"allow user alice interface a/b cluster 7 ports 9":           `interface "a/b": want names`,
	"allow user alice interface a:b cluster 7 ports 9":           `interface "a:b": want names`,
	"allow user alice interface abcdefghijklmnop cluster 7":      `interface "abcdefghijklmnop": want names`,
	"allow user alice interface eth0 ports 9":                    `"ports": want cluster here`,
	"allow user alice interface eth0 cluster x ports 9":          `cluster "x": want any, or numbers and ranges`,
	"allow user alice interface eth0 cluster 1-x ports 9":        `cluster "1-x": want any, or numbers`,
	"allow user alice interface eth0 cluster -1 ports 9":         `cluster "-1": want any, or numbers`,
	"allow user alice interface eth0 cluster 9-8 ports 9":        `cluster "9-8": want any, or numbers`,
	"allow user alice interface eth0 cluster 4294967296 ports 9": `cluster "4294967296": want any, or numbers and ranges (0-9,20) up to 4294967295`,
	"allow user alice interface eth0 cluster 7 ports 256":        `ports "256": want any, or numbers and ranges (0-9,20) up to 255`,
	"allow user alice interface eth0 cluster 7 ports 1,,2":       `ports "": want any, or numbers`,
	"allow user alice interface eth0 cluster 7":                  `"": want ports here`,
	"allow user alice interface eth0 cluster 010 ports 9":        `cluster "010": want any, or numbers`,
	"allow user alice interface eth0 cluster 0b10 ports 9":       `cluster "0b10": want any, or numbers`,
	"allow user alice interface eth0 cluster 1_0 ports 9":        `cluster "1_0": want any, or numbers`,
	"allow user alice interface eth0 cluster 7 ports 000-077":    `ports "000-077": want any, or numbers`,
	good + " x":                 `"x": want ethertype here`,
	good + " ethertype":         "ethertype: no value",
	good + " ethertype 0x5ff":   `ethertype "0x5ff": want a number, 0x0600 to 0xfffe`,
	good + " ethertype 0xffff":  `ethertype "0xffff": want a number`,
	good + " ethertype 0104266": `ethertype "0104266": want a number`,
	good + " ethertype 0x10000": `ethertype "0x10000": want a number`,
	good + " ethertype 0x0800":  `ethertype "0x0800": is of IP, ARP or VLAN tags`,
	good + " ethertype 0x0806":  "is of IP, ARP or VLAN tags",
	good + " ethertype 0x86dd":  "is of IP, ARP or VLAN tags",
	good + " ethertype 0x8100":  "is of IP, ARP or VLAN tags",
	good + " ethertype 0x88a8":  "is of IP, ARP or VLAN tags",
	good + " ethertype 0x600 x": `"x": want the end of the line`,
	good + " xdp":               "xdp: no value",
	good + " xdp 1":             `xdp "1": want yes or no`,
	good + " xdp yes x":         `"x": want the end of the line`,
	good + " xdp yes ethertype": `"ethertype": want the end of the line`,
	"allow user alice interface eth0 cluster 7 ports " + list(17): "ports: 17 numbers and ranges (at most 16 on a line)",
	"allow total interface eth0 cluster 7 ports 9":                `"total": want user NAME, group NAME or any`,
	"limit total":                               `"": want links here`,
	"limit total memory 1":                      `"memory": want links here`,
	"limit":                                     `"": want user NAME, group NAME or any`,
	"limit alice links 1 memory 1":              `"alice": want user NAME`,
	"limit any memory 1":                        `"memory": want links here`,
	"limit any links x memory 1":                `links "x": want 0 to 4096`,
	"limit any links -1 memory 1":               `links "-1": want 0 to 4096`,
	"limit any links 4097 memory 1":             `links "4097": want 0 to 4096`,
	"limit total links 65536 memory 1":          `links "65536": want 0 to 4096`,
	"limit any links 1 x":                       `"x": want memory here`,
	"limit any links 1 memory":                  "memory: no value",
	"limit any links 1 memory 1T":               `memory "1T": want bytes`,
	"limit any links 1 memory M":                `memory "M": want bytes`,
	"limit any links 1 memory -1":               `memory "-1": want bytes`,
	"limit any links 1 memory 1048577G":         `memory "1048577G": want bytes`,
	"limit any links 1 memory 1125899906842625": `memory "1125899906842625": want bytes`,
	"limit any links 1 memory 1 x":              `"x": want the end of the line`,
}

// Each wrong line is told with its number, what stands there, and what is wanted.
func TestParseRefuses(t *testing.T) {
	for line, want := range wrongLines {
		_, err := Parse("grants", []byte("\n"+good+"\n"+line+"\n"), names)
		if err == nil || !strings.HasPrefix(err.Error(), "grants:3: ") || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want grants:3: … %s", line, err, want)
		}
	}
	_, err := Parse("grants", []byte("x\n\nlimit any links 1 memory 1\nlimit any links 2 memory 2\n"), names)
	if want := "grants:1: \"x\": want allow or limit\ngrants:4: a second limit for any"; err == nil || err.Error() != want {
		t.Errorf("two wrong lines: %v, want %s", err, want)
	}
	if _, err := Parse("grants", []byte("limit user 5 links 1 memory 1\nlimit group 5 links 1 memory 1\nlimit user 6 links 1 memory 1"), names); err != nil {
		t.Errorf("limits of three: %v", err)
	}
	if _, err := Parse("grants", make([]byte, MaxFile+1), names); err == nil || !strings.Contains(err.Error(), "longer than") {
		t.Errorf("a large file: %v", err)
	}
	if _, err := Parse("grants", slices.Repeat([]byte("\n"), MaxFile), names); err != nil {
		t.Errorf("the largest file: %v", err)
	}
}

// list is n numbers that do not touch.
func list(n int) string {
	var items []string
	for i := range n {
		items = append(items, fmt.Sprint(2*i))
	}
	return strings.Join(items, ",")
}

// rightLines are lines at the bounds, and how they are printed.
var rightLines = map[string]string{
	"allow any interface abcdefghijklmno cluster 0 ports 0":                     "allow any interface abcdefghijklmno cluster 0 ports 0 ethertype 0x88b5\n",
	"allow any interface any cluster 4294967295 ports 255 ethertype 0x600":      "allow any interface any cluster 4294967295 ports 255 ethertype 0x0600\n",
	"allow any interface any cluster 0-4294967295 ports 0-255 ethertype 0xfffe": "allow any interface any cluster any ports any ethertype 0xfffe\n",
	"allow any interface any cluster 1 ports " + list(16):                       "allow any interface any cluster 1 ports " + list(16) + " ethertype 0x88b5\n",
	"allow any interface any cluster 1 ports 9,8,3-4,5,1-3,11-11":               "allow any interface any cluster 1 ports 1-5,8-9,11 ethertype 0x88b5\n",
	"allow any interface any cluster 1 ports 200-255,0-10,5-250":                "allow any interface any cluster 1 ports any ethertype 0x88b5\n",
	"allow any interface any cluster 1-9,3-5,11 ports 7":                        "allow any interface any cluster 1-9 ports 7 ethertype 0x88b5\nallow any interface any cluster 11 ports 7 ethertype 0x88b5\n",
	"allow any interface any cluster 1 ports 2 xdp yes":                         "allow any interface any cluster 1 ports 2 ethertype 0x88b5 xdp yes\n",
	"allow any interface any cluster 1 ports 2 ethertype 0x88b6 xdp no":         "allow any interface any cluster 1 ports 2 ethertype 0x88b6\n",
	"limit user bob links 4096 memory 4294967295":                               "limit user bob links 4096 memory 4294967295\n",
	"limit group 7 links 0 memory 3G":                                           "limit group 7 links 0 memory 3221225472\n",
	"limit any links 1 memory 2M# so":                                           "limit any links 1 memory 2097152\n",
	"limit any links 1 memory 3K":                                               "limit any links 1 memory 3072\n",
	"# nothing":                                                                 "",
}

// What is at the bounds is taken.
func TestParseTakes(t *testing.T) {
	for line, want := range rightLines {
		if got := parse(t, line).String(); got != want {
			t.Errorf("%q: %q, want %q", line, got, want)
		}
	}
}

// What String prints is parsed to the same rules, and these allow the same.
func TestStringIsARuleFile(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		var b strings.Builder
		for range r.IntN(4) {
			c, p := r.Uint32()>>r.IntN(32), r.IntN(256)
			fmt.Fprintf(&b, "allow %s interface %s cluster %d-%d,%d ports %d-%d,%d%s\n", []string{"any", "user alice", "group hpc"}[r.IntN(3)],
				[]string{"any", "eth0", "eth0,eth1"}[r.IntN(3)], c, c+min(r.Uint32()>>r.IntN(32), math.MaxUint32-c), r.Uint32(),
				p, p+r.IntN(256-p), r.IntN(256), []string{"", " xdp yes"}[r.IntN(2)])
		}
		a := parse(t, b.String())
		again := parse(t, a.String())
		if a.String() != again.String() {
			t.Fatalf("%s\nis printed as\n%s\nand then as\n%s", &b, a, again)
		}
		for range 50 {
			who, ifname := []Peer{alice, bob, nobody}[r.IntN(3)], []string{"eth0", "eth1", "eth2"}[r.IntN(3)]
			if x, y := fmt.Sprint(a.Scopes(who, ifname, ours)), fmt.Sprint(again.Scopes(who, ifname, ours)); x != y {
				t.Fatalf("%s\nallows %s, and when read again %s", &b, x, y)
			}
			if x, y := fmt.Sprint(a.XDPScopes(who, ifname, ours)), fmt.Sprint(again.XDPScopes(who, ifname, ours)); x != y {
				t.Fatalf("%s\nallows %s by link xdp, and when read again %s", &b, x, y)
			}
		}
	}
}

// Any bytes are rules or an error that names a line; rules are bounded by their file.
func FuzzParse(f *testing.F) {
	f.Add("allow user alice interface eth0 cluster 7 ports 0-99,253-255\nlimit any links 4 memory 16M\n")
	f.Add("allow group hpc interface any cluster any ports any ethertype 0x88b6 # x\n\n")
	f.Add("limit any links 1 memory 1\nlimit any links 2 memory 2\n")
	f.Add("limit any links 1 memory 10G") // which is printed in bytes
	for _, lines := range []map[string]string{wrongLines, rightLines} {
		for _, line := range slices.Sorted(maps.Keys(lines)) {
			f.Add(line)
		}
	}
	if _, err := Parse("grants", make([]byte, MaxFile+1), names); err == nil { // too long to be varied
		f.Error("a large file is taken")
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, err := Parse("grants", []byte(text), names)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "grants:") {
				t.Errorf("%v", err)
			}
			return
		}
		again, err := Parse("grants", []byte(r.String()), names)
		if err != nil || again.String() != r.String() {
			t.Errorf("%q is printed as %q: %v", text, r, err)
		}
		for _, uid := range []uint32{1001, 1002, 5} {
			line := "limit user " + r.UserName(uid) + " links 3 memory 1M"
			if of := parse(t, line).Limit(Peer{UID: uid}); of.Links != 3 {
				t.Errorf("of the rules %q, the line %q gives user %d %+v", text, line, uid, of)
			}
		}
	})
}
