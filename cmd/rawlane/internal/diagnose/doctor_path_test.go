package diagnose

import "testing"

func TestCheckPaths(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": true, "127.0.0.1:1": true, "::1": true, "[::1]": true, "[::1]:65535": true,
		"fe80::1%eth0": true, "[fe80::1%eth0]:7401": true, "node3": true, "node3:7401": true, "node3:domain": true,
		"": false, ":7401": false, "node3:": false, "node3:0": false, "127.0.0.1:0": false, "[::1]:0": false,
		"node3:-1": false, "node3:65536": false, "node3:nothing": false, "a:b:c": false, "http://node3": false,
		"2001:db8::1:0": true, "[2001:db8::1:0]": true, "node3:00": false,
		"node 3": false, "[node3": false, "[::1": false, "::1]": false,
	} {
		if err := checkPaths([]string{text}); (err == nil) != want {
			t.Errorf("%q: %v", text, err)
		}
	}
}
