package wire

import (
	"bytes"
	"testing"

	"github.com/rawlane/rawlane/internal/fuzzseed"
)

// FuzzParseAuth: bytes of any kind are parsed or refused by name, and what is parsed is written back
// the same, but for the tag and for flags that have no meaning.
func FuzzParseAuth(f *testing.F) {
	for _, h := range []Header{
		{Kind: Unicast, DstPort: 9, SrcPort: 7, From: 1, To: 2, Cluster: 0x01020304},
		{Kind: Contact, From: 3, To: AllNodes, Tagged: true, TCI: 0x2065},
		{Kind: Contact + 1},
	} {
		a := Auth{KeyID: 5, Encrypted: h.Tagged, Incarnation: 0x1122334455667788, Counter: 0x99aabbccddeeff00}
		for _, v := range fuzzseed.Variants(written(&h, &a, "hello")) {
			f.Add(v)
		}
	}
	f.Add([]byte{Version<<4 | byte(Unicast)})
	f.Fuzz(func(t *testing.T, b []byte) {
		var h, again Header
		var a, w Auth
		fault := ParseAuth(b, &h, &a)
		if fault.String() == "unknown" {
			t.Fatalf("fault %d has no name", fault)
		}
		if cluster, ok := ClusterOf(b); ok && fault == OK && cluster != h.Cluster {
			t.Fatalf("of cluster %d, and of %d", cluster, h.Cluster)
		}
		if fault != OK {
			return
		}
		if len(h.Payload) != LengthOf(b) || VersionOf(b) != AuthVersion {
			t.Fatalf("%d bytes of version %d, want %d", LengthOf(b), VersionOf(b), len(h.Payload))
		}
		out := written(&h, &a, string(h.Payload))
		if f := ParseAuth(out, &again, &w); f != OK || w != a || !bytes.Equal(again.Payload, h.Payload) ||
			again.Kind != h.Kind || again.From != h.From || again.To != h.To || again.Cluster != h.Cluster ||
			again.Tagged != h.Tagged || again.Tagged && again.TCI != h.TCI {
			t.Errorf("%+v %+v was written back as %+v %+v (%v)", h, a, again, w, f)
		}
	})
}

// What is read of a contact frame's payload is written the same.
func FuzzContactBody(f *testing.F) {
	body := ContactBody{Flags: ContactChallenge | ContactResponse, Challenge: [16]byte{1}, Response: [16]byte{2}, Age: 3, EchoedAge: 4, Floor: 5}
	b := make([]byte, ContactLen)
	body.Put(b)
	for _, v := range fuzzseed.Variants(b) {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var c, again ContactBody
		if c.Parse(b) != (len(b) >= ContactLen) {
			t.Fatalf("%d bytes: %+v", len(b), c)
		}
		if len(b) < ContactLen {
			return
		}
		out := bytes.Repeat([]byte{0xff}, ContactLen)
		c.Put(out)
		if !again.Parse(out) || again != c {
			t.Errorf("%+v, then %+v", c, again)
		}
		if again.Has(ContactChallenge) != (c.Flags&1 != 0) || again.Has(ContactChallenge|ContactResponse) != (c.Flags&3 == 3) {
			t.Errorf("flags %x: %+v", c.Flags, again)
		}
	})
}
