package schedule_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rawlane/rawlane/barrier/schedule"
)

func parse(t testing.TB, text string) *schedule.Table {
	t.Helper()
	table, err := schedule.ParseTable("x.table", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return table
}

// The row of a group's shape comes first, then the one of its size, then the model.
func TestTable_Choose(t *testing.T) {
	table := parse(t, `
# ranks  algorithm  us    where they run
4        star       1.25  1 host: 4 ranks on 2 cores  # as measured
4        tree:3     -
5        shuffle    7     1 host: 5 ranks on 2 cores
6        hier:2     -     unknown hosts
9        auto:1     -
`)
	on := func(size, cores int) schedule.Shape { return schedule.OneHost(size, cores, schedule.MemoryCosts) }
	for _, c := range []struct {
		name  string
		shape schedule.Shape
		size  int
		want  string
	}{
		{"as measured", on(4, 2), 4, "star"},
		{"another number of cores", on(4, 3), 4, "tree:3"},
		{"hosts that are not known", schedule.Shape{}, 4, "tree:3"},
		{"another number of cores, and no row of the size", on(5, 1), 5, on(5, 1).Choose(5).String()},
		{"a row of hosts that are not known", schedule.Shape{}, 6, "hier:2:star:tree:2"},
		{"auto, for its size", on(9, 2), 9, schedule.AutoShared(1).For(9).String()},
		{"no row", on(7, 2), 7, on(7, 2).Choose(7).String()},
	} {
		if got := table.Choose(c.shape, c.size).String(); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// What is written is read again, ordered by ranks.
func TestTable_WriteTo(t *testing.T) {
	table := parse(t, "32 tree:8 152.2 1 host: 32 ranks on 2 cores\n2 shuffle 0.01\n32 tree:4 -\n")
	var text strings.Builder
	n, err := table.WriteTo(&text)
	want := `# table 2: "# end" is the last line
# ranks  algorithm                      us  where they run
2        shuffle                     0.010
32       tree:4                          -
32       tree:8                    152.200  1 host: 32 ranks on 2 cores
# end
`
	if text.String() != want || n != int64(len(want)) || err != nil {
		t.Errorf("%d, %v:\n%s", n, err, text.String())
	}
	if again := parse(t, want); fmt.Sprint(again.Rows()) != fmt.Sprint(table.Rows()) {
		t.Errorf("%v is read as %v", table.Rows(), again.Rows())
	}
	if r := table.Rows()[2]; r.Ranks != 32 || r.Mean != 152200*time.Nanosecond || r.Algorithm.String() != "tree:8" {
		t.Errorf("%+v", r)
	}
}

// A row without an algorithm, as a program may set one, is for no group: the next one has it.
func TestTable_RowWithoutAlgorithm(t *testing.T) {
	here := schedule.OneHost(7, 2, schedule.MemoryCosts)
	table := &schedule.Table{}
	table.Set(schedule.Row{Ranks: 7, Where: here.String()})
	if got, want := table.Choose(here, 7).String(), here.Choose(7).String(); got != want {
		t.Errorf("%q, want the model's %s", got, want)
	}
	table.Set(schedule.Row{Ranks: 7, Algorithm: schedule.Star()})
	if got := table.Choose(here, 7).String(); got != "star" {
		t.Errorf("%q, want that of ranks anywhere", got)
	}
}

// A row that would not be read as it is is not written, and none of the others.
func TestTable_WriteToRefuses(t *testing.T) {
	row := func(change func(*schedule.Row)) schedule.Row {
		r := schedule.Row{Ranks: 4, Where: "1 host: 4 ranks on 2 cores", Algorithm: schedule.Star(), Mean: time.Microsecond}
		change(&r)
		return r
	}
	for what, r := range map[string]schedule.Row{
		"no algorithm":      row(func(r *schedule.Row) { r.Algorithm = schedule.Algorithm{} }),
		"one of one's own":  row(func(r *schedule.Row) { r.Algorithm = schedule.New("mine", schedule.Star().Steps) }),
		"one rank":          row(func(r *schedule.Row) { r.Ranks = 1 }),
		"less than no time": row(func(r *schedule.Row) { r.Mean = -1 }),
		"too long":          row(func(r *schedule.Row) { r.Mean = 1001 * time.Second }),
		"a comment":         row(func(r *schedule.Row) { r.Where += " #1" }),
		"two lines":         row(func(r *schedule.Row) { r.Where += "\n5 star -" }),
		"spaces":            row(func(r *schedule.Row) { r.Where = " " + r.Where }),
	} {
		table := parse(t, "2 shuffle -\n")
		table.Set(r)
		var text strings.Builder
		if n, err := table.WriteTo(&text); err == nil || n != 0 || text.Len() != 0 {
			t.Errorf("%s: %d bytes, %v:\n%s", what, n, err, text.String())
		}
	}
}

// The least and the most that a row may say is taken.
func TestParseTable_Bounds(t *testing.T) {
	for text, want := range map[string]schedule.Row{
		"2 star 0":              {Ranks: 2},
		"65536 star 1000000000": {Ranks: 65536, Mean: 1000 * time.Second},
	} {
		rows := parse(t, text).Rows()
		if len(rows) != 1 || rows[0].Ranks != want.Ranks || rows[0].Mean != want.Mean {
			t.Errorf("%q: %+v", text, rows)
		}
	}
}

func TestParseTable_Refuses(t *testing.T) {
	for text, want := range map[string]string{
		"\n\n4 star":          `x.table:3: "4 star": want how many ranks`,
		"1 star -":            `x.table:1: "1": want how many ranks, of 2 to 65536`,
		"many star -":         `"many": want how many ranks`,
		"65537 star -":        `"65537": want how many ranks`,
		"4 bush -":            `there is no "bush" (there are: shuffle`,
		"4 star fast":         `"fast": want microseconds, or -`,
		"4 star -1":           `"-1": want microseconds`,
		"4 star NaN":          `"NaN": want microseconds`,
		"4 star 1e10":         `"1e10": want microseconds`,
		"4 star 1000000000.5": `"1000000000.5": want microseconds`,
		"4 star - unknown hosts\n4 tree:2 1.5 unknown hosts":                                      `x.table:2: a second row of 4 ranks, "unknown hosts"`,
		"4 star -\n# a word\n4 tree:2 - # x":                                                      `x.table:3: a second row of 4 ranks, ""`,
		"64 " + strings.Repeat("repeated:64:", 6) + "shuffle" + strings.Repeat(":star", 6) + " -": "x.table:1: repeated:64",
	} {
		if _, err := schedule.ParseTable("x.table", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

// A table that was cut anywhere is none: not one of fewer rows, nor of rows for other groups. One that
// was written by hand, or before tables had an end, needs none.
func TestParseTable_Cut(t *testing.T) {
	var b strings.Builder
	rows := "2 shuffle 0.5\n3 star 1.0 1 host: 3 ranks on 2 cores\n8 tree:3 2 2 hosts: 4 ranks on a core each; in turn\n"
	if _, err := parse(t, rows).WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	whole := strings.TrimRight(b.String(), "\n")
	parse(t, "# as measured\n"+whole)
	for n := range len(whole) {
		table, err := schedule.ParseTable("x.table", strings.NewReader(whole[:n]))
		if err == nil {
			t.Errorf("%q is a table of %v", whole[:n], table.Rows())
		}
	}
	for text, want := range map[string]string{
		"":                         `x.table:1: no "# end" behind its rows (0): the file was cut`,
		"# table 2: x\n4 star -\n": `x.table:3: no "# end" behind its rows (1)`,
		"# table 3: x\n":           `x.table:1: a table of format 3: want 2`,
		whole + "\n4 star -":       `a row behind "# end"`,
	} {
		if _, err := schedule.ParseTable("x.table", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	for _, text := range []string{rows, "# ranks  algorithm  us  where they run\n" + rows, "# table of ours\n" + rows} {
		if got := len(parse(t, text).Rows()); got != 3 {
			t.Errorf("%q: %d rows, want 3", text, got)
		}
	}
}

// Words of where ranks run are those that a shape of as many ranks says, or none.
func TestParseTable_Where(t *testing.T) {
	for where, want := range map[string]string{
		"1 host: 4 ranks on 2 core": `x.table:1: "1 host: 4 ranks on 2 core": want where ranks run`,
		"1 host: 4 ranks on":        "want where ranks run",
		"1 host":                    "want where ranks run",
		"in turn":                   "want where ranks run",
		"2 hosts: 2 ranks on a core each; in tur":      "want where ranks run",
		"2 hosts: 2 ranks on a core each; spread 12":   "want where ranks run",
		"1 host: 3 ranks on 2 cores":                   "want where 4 ranks run (these are 3)",
		"1 host: 99999999999999999999 ranks on 1 core": "want no more than",
	} {
		if _, err := schedule.ParseTable("x.table", strings.NewReader("4 star - "+where)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", where, err, want)
		}
	}
	costs := schedule.MemoryCosts
	host := func(cores int) schedule.Host { return schedule.Host{Cores: cores, Local: costs} }
	for _, shape := range []schedule.Shape{
		{}, schedule.OneHost(5, 1, costs), schedule.OneHost(5, 2, costs), schedule.OneHost(5, 8, costs),
		{Hosts: []schedule.Host{host(1), host(1)}, Of: []int{0, 1, 0, 1, 0}},
		{Hosts: []schedule.Host{host(1), host(9)}, Of: []int{0, 1, 1, 0, 1}},
	} {
		table := parse(t, "5 star - "+shape.String())
		if row, has := table.Find(shape, 5); !has || row.Where != shape.String() {
			t.Errorf("%v: found %v, %+v", shape, has, row)
		}
	}
}

// What a reader or a writer fails with is returned, and what was read before does not make a table.
func TestTable_OfBrokenFiles(t *testing.T) {
	broken := errors.New("broken")
	in := io.MultiReader(strings.NewReader("4 star -\n"), iotest.ErrReader(broken))
	if _, err := schedule.ParseTable("x.table", in); !errors.Is(err, broken) || err.Error() != "x.table: broken" {
		t.Errorf("a reader that fails: %v", err)
	}
	long := strings.NewReader("4 star - " + strings.Repeat("x", 1<<17))
	if _, err := schedule.ParseTable("x.table", long); !errors.Is(err, bufio.ErrTooLong) {
		t.Errorf("a line without end: %v", err)
	}
	table := parse(t, "4 star -")
	if n, err := table.WriteTo(failing{broken}); n != 3 || !errors.Is(err, broken) {
		t.Errorf("a writer that fails: %d, %v", n, err)
	}
}

// failing takes three bytes.
type failing struct{ err error }

func (f failing) Write([]byte) (int, error) { return 3, f.err }

// No table is one without rows, and either has what the model says for all.
func TestTable_WithoutRows(t *testing.T) {
	here := schedule.OneHost(7, 2, schedule.MemoryCosts)
	for name, table := range map[string]*schedule.Table{"none": nil, "zero": {}, "empty": parse(t, "# no row\n# end\n")} {
		if rows := table.Rows(); len(rows) != 0 {
			t.Errorf("%s: %v", name, rows)
		}
		if got, want := table.Choose(here, 7).String(), here.Choose(7).String(); got != want {
			t.Errorf("%s: %s, want the model's %s", name, got, want)
		}
	}
}

// A quicker algorithm of many frames gives way to one that is nearly as quick, and no slower one.
func TestRank(t *testing.T) {
	c := func(a schedule.Algorithm, us, frames int) schedule.Choice {
		return schedule.Choice{Algorithm: a, Cost: time.Duration(us) * time.Microsecond, Frames: frames}
	}
	measured := []schedule.Choice{
		c(schedule.Tree(2), 106, 2), c(schedule.Star(), 105, 4), c(schedule.Shuffle(), 100, 8), c(schedule.Concurrent(), 102, 8),
	}
	var got []string
	for _, x := range schedule.Rank(measured) {
		got = append(got, x.Algorithm.String())
	}
	if want := []string{"star", "shuffle", "concurrent", "tree:2"}; !reflect.DeepEqual(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if measured[0].Algorithm.String() != "tree:2" {
		t.Error("Rank has moved what it was given")
	}
	if none := schedule.Rank(nil); len(none) != 0 {
		t.Errorf("of nothing: %v", none)
	}
}

// No bytes make ParseTable panic, and what it reads is written whole and read the same.
func FuzzParseTable(f *testing.F) {
	f.Add("4 star 1.25 1 host: 4 ranks on 2 cores\n")
	f.Add("# ranks\n32 hier:4:star:tree:2 -\n2 stripe:2:tree:3 1e3 x # y\n")
	f.Add("2 star 0.001\n3 star 1.0049\n4 star 0.0007\n5 star 999999999.9999\n6 star 0.004\n")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := schedule.ParseTable("x", strings.NewReader(text))
		if err != nil {
			return
		}
		var written strings.Builder
		_, _ = table.WriteTo(&written)
		got, want := fmt.Sprint(parse(t, written.String()).Rows()), fmt.Sprint(table.Rows())
		if got != want {
			t.Errorf("%q is written as\n%s that is read as %s, not %s", text, written.String(), got, want)
		}
	})
}
