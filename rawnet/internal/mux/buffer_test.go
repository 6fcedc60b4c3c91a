package mux

import (
	"bytes"
	"testing"
)

// What a stream buffers takes four windows of memory at most, however it comes and is read, and none
// once all is read.
func TestBuffer_IsBounded(t *testing.T) {
	const window = 64 << 10
	for _, c := range []struct{ comes, read int }{{window, window}, {100, 100}, {1000, 70}, {70, 1000}, {window / 2, window/2 - 1}, {5000, 4999}} {
		m := New(Config{Window: window})
		s, err := m.Dial(5)
		if err != nil {
			t.Fatal(err)
		}
		m.Handle(5, (&Record{Kind: Accept, Stream: s.Number()}).Append(nil), nil)
		var sent, read []byte
		most, b := 0, make([]byte, c.read)
		for len(sent) < 5*window {
			for n := 0; n < 10; n++ { // bursts, up to the limit
				data := make([]byte, min(c.comes, int(s.limit-s.got)))
				if len(data) == 0 {
					break
				}
				for i := range data {
					data[i] = byte(len(sent) + i*i>>8)
				}
				sent = append(sent, data...)
				m.Handle(5, append(s.header(), data...), nil)
				most = max(most, cap(s.block))
			}
			for range 9 {
				n := s.Read(b)
				read = append(read, b[:n]...)
			}
			for k, ok := m.Next(5); ok; k, ok = m.Next(5) {
				m.Sent(&k, nil)
			}
		}
		for n := s.Read(b); n > 0; n = s.Read(b) {
			read = append(read, b[:n]...)
		}
		if !bytes.Equal(read, sent) {
			t.Errorf("%+v: %d bytes were read of %d, or others", c, len(read), len(sent))
		}
		if most > 4*window || s.block != nil || s.head != 0 {
			t.Errorf("%+v: %d bytes of memory, want %d at most, and none at the end: %d", c, most, 4*window, cap(s.block))
		}
	}
}

// header is that of a Data record of the other end.
func (s *Stream) header() []byte {
	return (&Record{Kind: Data, Dialer: !s.name.dialed, Stream: s.name.number}).Append(nil)
}
