package launch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/fabric"
)

// What a node has sent until a while after an interrupt is in its capture when it is killed.
func TestRecorder_EndsBeforeTheProcess(t *testing.T) {
	c := &ClusterFlags{captureTo: filepath.Join(t.TempDir(), "run.pcapng")}
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		rec, err := c.recorder()
		if err != nil {
			t.Fatal(err)
		}
		rec.endAfter(ctx)
		pair, err := fabric.Links(2)
		if err != nil {
			t.Fatal(err)
		}
		links := []transport.Link{pair[0], pair[1]}
		defer func() { _ = closeLinks([][]transport.Link{links}) }()
		if err := rec.wrap(links[:1]); err != nil {
			t.Fatal(err)
		}
		size := func() int64 {
			info, err := os.Stat(c.captureTo)
			if err != nil {
				t.Fatal(err)
			}
			return info.Size()
		}
		interrupt()
		synctest.Wait()
		if _, err := links[0].Send([]transport.Frame{{Dst: links[1].MAC(), EtherType: transport.EtherTypeDefault}}); err != nil {
			t.Fatal(err)
		}
		if n := size(); n != 0 {
			t.Errorf("%d bytes, want the recording to go on for a goodbye", n)
		}
		time.Sleep(endTimeout - time.Millisecond)
		if n := size(); n == 0 || rec.file.Counts().Captured != 1 {
			t.Errorf("%d bytes, %+v, want the frame", n, rec.file.Counts())
		}
		if err := rec.close(); err != nil {
			t.Error(err)
		}
	})
}
