package mcd_test

import (
	"strings"
	"testing"

	"github.com/rawlane/rawlane/mcd"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// listed is a link that is not comparable.
type listed struct {
	transport.Link
	_ []int
}

// A link that is given twice would be polled twice, and each time bring a part of its frames.
func TestOpen_LinkGivenTwice(t *testing.T) {
	links, err := fabric.Links(2)
	if err != nil {
		t.Fatal(err)
	}
	twice := []transport.Link{links[0], links[1], links[0]}
	if e, err := mcd.Open(mcd.Config{}, twice...); err == nil || !strings.Contains(err.Error(), "is given twice") {
		t.Errorf("%v, %v; want an error that says so", e, err)
	}
	e, err := mcd.Open(mcd.Config{}, listed{Link: links[0]}, listed{Link: links[1]})
	if err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
}

// A link that is nil, as behind an Open whose error was not looked at, is refused in words.
func TestOpen_LinkIsNil(t *testing.T) {
	links, err := fabric.Links(1)
	if err != nil {
		t.Fatal(err)
	}
	defer links[0].Close()
	for _, none := range []transport.Link{nil, (*fabric.Link)(nil)} {
		_, err := mcd.Open(mcd.Config{}, links[0], none)
		if err == nil || !strings.Contains(err.Error(), "link 1 is nil (want one that is open") {
			t.Errorf("%v, want an error that says so", err)
		}
		if _, err := mcd.Open(mcd.Config{}, none); err == nil || !strings.Contains(err.Error(), "link 0 is nil") {
			t.Errorf("the first: %v, want an error that says so", err)
		}
	}
}

// gathered is a link that meets others of its host in a folder.
type gathered struct {
	transport.Link
	folder string
}

func (g gathered) Folder() string { return g.folder }

// Two links of one segment would reach each other, and each receive what is for the other network.
func TestOpen_TwoLinksOfOneSegment(t *testing.T) {
	links, err := fabric.Links(3)
	if err != nil {
		t.Fatal(err)
	}
	e, err := mcd.Open(mcd.Config{}, around{gathered{links[0], "/run/a"}}, links[1], gathered{links[2], "/run/a"})
	if err == nil || !strings.Contains(err.Error(), "both are stations of the segment in /run/a (want one for each network)") {
		t.Errorf("%v, %v; want an error that says so", e, err)
	}
	if e, err = mcd.Open(mcd.Config{}, gathered{links[0], "/run/a"}, links[1], gathered{links[2], "/run/b"}); err != nil {
		t.Fatal(err)
	}
	_ = e.Close()
}
