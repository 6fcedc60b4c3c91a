package memfifo

import (
	"bytes"
	"context"
	"encoding/hex"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/memfifo/internal/reliable"
)

// unhex reads bytes as docs/wire-format.md writes them.
func unhex(t testing.TB, text string) []byte {
	t.Helper()
	b, err := hex.DecodeString(strings.Join(strings.Fields(text), ""))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// goldenSecret is that of all keys here.
const goldenSecret = 0x5152535455565758

// said returns the records that the domain has sent since the last call.
func (r *raw) said() []byte {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	b := r.replies
	r.replies = nil
	return b
}

// The records that operations make are those of docs/wire-format.md, byte by byte.
func TestRecord_GoldenRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, raw := openRaw(t)
		r := d.Remote(Key{Node: 1, ID: 0x4142, Secret: goldenSecret})
		const key = "4142 5152535455565758"
		for _, x := range []struct {
			name string
			do   func(ctx context.Context) error
			want string
		}{
			{"put", func(ctx context.Context) error { return r.Put(ctx, 0x61, []byte("put")) },
				"01 01 0003" + key + "0000000000000061 707574"},
			{"put continue", func(ctx context.Context) error { return r.Put(ctx, 0x64, []byte("it")) },
				"0d 01 0002 6974"},
			{"signal", func(ctx context.Context) error { return r.Signal(ctx) },
				"01 05 0000" + key + "0000000000000000"},
			{"push", func(ctx context.Context) error { return r.Push(ctx, []byte("push")) },
				"02 03 0004" + key + "00000004 70757368"},
			{"try push", func(ctx context.Context) error { return r.TryPush(ctx, []byte("try")) },
				"03 00 0003" + key + "00000001 747279"},
			{"get", func(ctx context.Context) error { return r.Get(ctx, 0x62, make([]byte, 0x123)) },
				"04 00 0000" + key + "0000000000000062 00000002 00000123"},
			{"fetch and add", func(ctx context.Context) error { _, err := r.FetchAdd(ctx, 0x68, 0x71); return err },
				"05 00 0000" + key + "0000000000000068 00000003 0000000000000071"},
			{"swap", func(ctx context.Context) error { _, err := r.Swap(ctx, 0x68, 0x72); return err },
				"06 00 0000" + key + "0000000000000068 00000004 0000000000000072"},
			{"compare and swap", func(ctx context.Context) error { _, err := r.CompareSwap(ctx, 0x68, 0x73, 0x74); return err },
				"07 00 0000" + key + "0000000000000068 00000005 0000000000000074 0000000000000073"},
			{"fence", func(ctx context.Context) error { return d.Flush(ctx) },
				"08 00 0000 00000006"},
			{"a parcel that notifies at once", func(context.Context) error {
				return d.Post(&Parcel{To: r, Off: 9, Data: []byte{1}, Notify: OnFirst})
			}, "01 05 0001" + key + "0000000000000009 01"},
		} {
			soon, cancel := context.WithTimeout(t.Context(), time.Millisecond)
			_ = x.do(soon) // what has a reply waits for it in vain
			cancel()
			time.Sleep(time.Millisecond)
			if got, want := raw.said(), unhex(t, x.want); !bytes.Equal(got, want) {
				t.Errorf("%s: % x, want % x", x.name, got, want)
			}
		}
	})
}

// A long push and a long put are cut into parts whose flags say which they are.
func TestRecord_GoldenParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, raw := openRaw(t)
		r := d.Remote(Key{Node: 1, ID: 0x4142, Secret: goldenSecret})
		long := make([]byte, 3000)
		flags := func() (ops, flags []byte, total int) {
			time.Sleep(time.Millisecond)
			var rec record
			for b := raw.said(); len(b) > 0; b = rec.next {
				if !rec.parse(b) {
					t.Fatalf("% x is no record", b)
				}
				ops, flags, total = append(ops, byte(rec.op)), append(flags, rec.flags), total+len(rec.data)
			}
			return ops, flags, total
		}
		for _, x := range []struct {
			name       string
			do         func() error
			ops, flags string
		}{
			{"push", func() error { return r.Push(t.Context(), long) }, "020202", "020001"},
			{"put", func() error { return r.Put(t.Context(), 0, long) }, "010d0d", "000001"},
			{"put with a notification", func() error { return r.PutNotify(t.Context(), 0, long) }, "010d0d", "000005"},
			{"parcel with one on its first part", func() error {
				return d.Post(&Parcel{To: r, Data: long, Notify: OnFirst})
			}, "010d0d", "040001"},
		} {
			if err := x.do(); err != nil {
				t.Fatal(err)
			}
			ops, flags, total := flags()
			if !bytes.Equal(ops, unhex(t, x.ops)) || !bytes.Equal(flags, unhex(t, x.flags)) || total != len(long) {
				t.Errorf("%s: opcodes %x, flags %x, %d bytes; want %s, %s, %d", x.name, ops, flags, total, x.ops, x.flags, len(long))
			}
		}
	})
}

// The replies to the requests of docs/wire-format.md are those that it says, byte by byte.
func TestRecord_GoldenReplies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, raw := openRaw(t)
		w, err := d.Register(0x4142, []byte("0123456789abcdef"), All)
		if err != nil {
			t.Fatal(err)
		}
		readable, err := d.Register(0x4143, make([]byte, 8), Read)
		if err != nil {
			t.Fatal(err)
		}
		q, err := d.NewFIFO(0x4142, make([]byte, MinFIFO))
		if err != nil {
			t.Fatal(err)
		}
		w.key.Secret, readable.key.Secret, q.key.Secret = goldenSecret, goldenSecret, goldenSecret
		word := func() string { // the window's second one, as a value
			v, _ := w.Load(8)
			return hex.EncodeToString([]byte{byte(v >> 56), byte(v >> 48), byte(v >> 40), byte(v >> 32), byte(v >> 24), byte(v >> 16), byte(v >> 8), byte(v)})
		}
		before := word()
		const key, wrong, other = "4142 5152535455565758", "4142 0000000000000000", "4143 5152535455565758"
		for _, x := range []struct{ name, request, reply string }{
			{"put", "01 01 0003" + key + "0000000000000003 707574", ""},
			{"put continue", "0d 01 0002 6974", ""},
			{"get", "04 00 0000" + key + "0000000000000002 00000011 00000007", "09 00 0007 00000011 00000000 32 7075746974 38"},
			{"get of nothing", "04 00 0000" + key + "0000000000000010 00000012 00000000", "0a 00 0000 00000012 0000000000000000"},
			{"swap", "06 00 0000" + key + "0000000000000008 00000013 0000000000000005", "0a 00 0000 00000013" + before},
			{"fetch and add", "05 00 0000" + key + "0000000000000008 00000014 0000000000000003", "0a 00 0000 00000014 0000000000000005"},
			{"compare and swap", "07 00 0000" + key + "0000000000000008 00000015 0000000000000009 0000000000000008",
				"0a 00 0000 00000015 0000000000000008"},
			{"compare and swap of another value", "07 00 0000" + key + "0000000000000008 00000016 0000000000000001 0000000000000008",
				"0a 00 0000 00000016 0000000000000009"},
			{"fence", "08 00 0000 00000017", "0a 00 0000 00000017 0000000000000000"},
			{"push", "02 03 0004" + key + "00000004 70757368", ""},
			{"parts of a push", "02 02 0002" + key + "00000004 7061 02 01 0002" + key + "00000004 7274", ""},
			{"try push", "03 00 0003" + key + "00000018 747279", "0a 00 0000 00000018 0000000000000000"},
			{"a longer one", "03 00 001c" + key + "00000019" + strings.Repeat("00", 28), "0a 00 0000 00000019 0000000000000000"},
			{"try push without room", "03 00 001c" + key + "00000019" + strings.Repeat("00", 28), "0b 00 0000 00000019 06"},
			{"no such id", "04 00 0000 0001 5152535455565758 0000000000000000 0000001a 00000001", "0b 00 0000 0000001a 01"},
			{"wrong key", "04 00 0000" + wrong + "0000000000000000 0000001b 00000001", "0b 00 0000 0000001b 02"},
			{"out of range", "04 00 0000" + key + "0000000000000010 0000001c 00000001", "0b 00 0000 0000001c 03"},
			{"no right", "05 00 0000" + other + "0000000000000000 0000001d 0000000000000001", "0b 00 0000 0000001d 04"},
			{"misaligned", "05 00 0000" + key + "0000000000000004 0000001e 0000000000000001", "0b 00 0000 0000001e 05"},
			{"put without a right", "01 01 0001" + other + "0000000000000000 01", "0c 00 0000 4143 04"},
			{"push with a wrong key", "02 03 0001" + wrong + "00000001 01", "0c 00 0000 4142 02"},
			{"parts of a push with a wrong key", "02 02 0001" + wrong + "00000002 01 02 01 0001" + wrong + "00000002 01", "0c 00 0000 4142 02"},
		} {
			if !raw.say(reliable.Requests, unhex(t, x.request)) {
				t.Fatalf("%s: not taken", x.name)
			}
			time.Sleep(time.Millisecond)
			if got, want := raw.said(), unhex(t, x.reply); !bytes.Equal(got, want) {
				t.Errorf("%s: % x, want % x", x.name, got, want)
			}
		}
		for _, want := range []string{"push", "part", "try"} {
			b := make([]byte, 8)
			if n, ok, err := q.TryPop(b); string(b[:n]) != want || !ok || err != nil {
				t.Errorf("%q, %v, %v; want %q", b[:n], ok, err, want)
			}
		}
	})
}
