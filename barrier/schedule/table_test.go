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
	want := `# ranks  algorithm                      us  where they run
2        shuffle                     0.010
32       tree:4                          -
32       tree:8                    152.200  1 host: 32 ranks on 2 cores
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
		r := schedule.Row{Ranks: 4, Where: "1 host", Algorithm: schedule.Star(), Mean: time.Microsecond}
		change(&r)
		return r
	}
	for what, r := range map[string]schedule.Row{
		"no algorithm":      row(func(r *schedule.Row) { r.Algorithm = schedule.Algorithm{} }),
		"one of one's own":  row(func(r *schedule.Row) { r.Algorithm = schedule.New("mine", schedule.Star().Steps) }),
		"one rank":          row(func(r *schedule.Row) { r.Ranks = 1 }),
		"less than no time": row(func(r *schedule.Row) { r.Mean = -1 }),
		"too long":          row(func(r *schedule.Row) { r.Mean = 1001 * time.Second }),
		"a comment":         row(func(r *schedule.Row) { r.Where = "host #1" }),
		"two lines":         row(func(r *schedule.Row) { r.Where = "1 host\n5 star -" }),
		"spaces":            row(func(r *schedule.Row) { r.Where = " 1  host" }),
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
		"\n\n4 star":                         `x.table:3: "4 star": want how many ranks`,
		"1 star -":                           `x.table:1: "1": want how many ranks, of 2 to 65536`,
		"many star -":                        `"many": want how many ranks`,
		"65537 star -":                       `"65537": want how many ranks`,
		"4 bush -":                           `there is no "bush" (there are: shuffle`,
		"4 star fast":                        `"fast": want microseconds, or -`,
		"4 star -1":                          `"-1": want microseconds`,
		"4 star NaN":                         `"NaN": want microseconds`,
		"4 star 1e10":                        `"1e10": want microseconds`,
		"4 star 1000000000.5":                `"1000000000.5": want microseconds`,
		"4 star - here\n4 tree:2 1.5 here":   `x.table:2: a second row of 4 ranks, "here"`,
		"4 star -\n# a word\n4 tree:2 - # x": `x.table:3: a second row of 4 ranks, ""`,
		"64 " + strings.Repeat("repeated:64:", 6) + "shuffle" + strings.Repeat(":star", 6) + " -": "x.table:1: repeated:64",
	} {
		if _, err := schedule.ParseTable("x.table", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
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
	for name, table := range map[string]*schedule.Table{"none": nil, "zero": {}, "empty": parse(t, "# no row\n")} {
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
