package memfifo_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/memfifo"
)

// A key is the same after a journey as text, at the bounds of its fields too.
func TestKey_IsItsText(t *testing.T) {
	for text, key := range map[string]memfifo.Key{
		"3/1/00c0ffee12345678":     {Node: 3, ID: 1, Secret: 0xc0ffee12345678},
		"0/0/0000000000000000":     {},
		"9/65535/ffffffffffffffff": {Node: 9, ID: 65535, Secret: 1<<64 - 1},
	} {
		if got := key.String(); got != text {
			t.Errorf("%+v is %q, want %q", key, got, text)
		}
		if got, err := memfifo.ParseKey(text); err != nil || got != key {
			t.Errorf("%q is %+v, %v", text, got, err)
		}
		b, err := json.Marshal(key)
		var back memfifo.Key
		if err != nil || json.Unmarshal(b, &back) != nil || back != key {
			t.Errorf("%+v is %+v after JSON (%s, %v)", key, back, b, err)
		}
	}
	last := memfifo.Key{Node: mcd.MaxNodeID}
	if got, err := memfifo.ParseKey(last.String()); err != nil || got != last {
		t.Errorf("%+v, %v", got, err)
	}
}

var noKeys = []string{"", "1", "1/2", "1/2/3/4", "x/1/0", "1/x/0", "1/1/x", "65535/1/0", "65536/1/0", "-1/1/0",
	"1/65536/0", "1/1/10000000000000000", "1/1/-1", " 1/1/0"}

func TestParseKey_Refuses(t *testing.T) {
	for _, text := range noKeys {
		if k, err := memfifo.ParseKey(text); err == nil || k != (memfifo.Key{}) || !strings.Contains(err.Error(), "want node/id/secret") {
			t.Errorf("%q is %+v, %v", text, k, err)
		}
	}
}

// Whatever is a key is the same key after a journey.
func FuzzParseKey(f *testing.F) {
	f.Add("3/1/00c0ffee12345678")
	for _, text := range noKeys {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		k, err := memfifo.ParseKey(text)
		if err != nil {
			return
		}
		if again, err := memfifo.ParseKey(k.String()); err != nil || again != k {
			t.Errorf("%q is %+v, and then %+v, %v", text, k, again, err)
		}
	})
}
