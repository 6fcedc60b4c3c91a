package manager_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/vlan/manager"
)

func TestParseAddrs(t *testing.T) {
	addrs, err := manager.ParseAddrs("list", strings.NewReader("# managers\nunix:/run/a.sock\n\n /run/b.sock # b\nhost:7\ntcp:[::1]:7\n/run/http://c\n"))
	if err != nil || fmt.Sprint(addrs) != "[unix:/run/a.sock unix:/run/b.sock host:7 [::1]:7 unix:/run/http://c]" {
		t.Errorf("%v, %v", addrs, err)
	}
	for _, bad := range []string{"unix:", "host", ":7", "host:", "tcp:x", "http://host:7", "tcp://host:7"} {
		if _, err := manager.ParseAddrs("list", strings.NewReader("\n"+bad)); err == nil || !strings.HasPrefix(err.Error(), "list: line 2: manager address") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

// What is no list of managers is said to be none, by line, without what is in it.
func TestParseAddrsRefusesOtherFiles(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"a long line", "unix:/run/a.sock\n" + strings.Repeat("x", 1<<20), "list: line 2: longer than 4096 bytes (want a list of managers: unix:PATH or HOST:PORT on each line)"},
		{"a long first line", strings.Repeat("/", 1<<17), "list: line 1: longer than 4096 bytes"},
		{"a program", "\x7fELF\x02\x01/lib", "list: line 1: not text (want a list of managers"},
		{"not UTF-8", "# fine\n\n/run/\xff", "list: line 3: not text"},
		{"an escape", "host:7\n/run/\x1b[31m", "list: line 2: not text"},
	} {
		if addrs, err := manager.ParseAddrs("list", strings.NewReader(c.text)); err == nil || !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s: %v, %v; want %q", c.name, addrs, err, c.want)
		}
	}
	if addrs, err := manager.ParseAddrs("list", strings.NewReader("\thost:7\t# tab, and CR LF\r\n/run/"+strings.Repeat("a", 1000)+"\n")); err != nil || len(addrs) != 2 {
		t.Errorf("%v, %v", addrs, err)
	}
}
