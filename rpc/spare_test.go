package rpc

import "testing"

// Few buffers are kept, and no long ones; each is handed out once.
func TestSpare_IsBounded(t *testing.T) {
	var s spare
	for range 100 {
		s.putMemory(make([]byte, 10))
		s.putCall(&call{response: make([]byte, 1)})
	}
	seen := map[*byte]bool{}
	for i := range 65 {
		b := s.getMemory()
		if (b == nil) != (i == 64) || len(b) != 0 {
			t.Fatalf("buffer %d of 64: %d bytes, capacity %d", i, len(b), cap(b))
		}
		if b != nil && seen[&b[:1][0]] {
			t.Fatalf("buffer %d is handed out twice", i)
		} else if b != nil {
			seen[&b[:1][0]] = true
		}
	}
	if n := len(s.calls); n != 64 {
		t.Errorf("%d calls are kept, want 64", n)
	}
	c := s.getCall()
	if c.response != nil || len(s.calls) != 63 || s.getCall() == c {
		t.Errorf("%+v", c)
	}
	s = spare{}
	s.putMemory(nil)
	s.putMemory(make([]byte, 64<<10+1))
	s.putCall(&call{buf: make([]byte, 64<<10+1)})
	if len(s.memory)+len(s.calls) > 0 {
		t.Error("what is long is kept")
	}
	s.putMemory(make([]byte, 64<<10))
	s.putCall(&call{buf: make([]byte, 64<<10)})
	if len(s.memory) != 1 || len(s.calls) != 1 || s.getCall() == nil || s.getCall() == nil {
		t.Error("what is not is not")
	}
}
