package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/capture"
)

// recorder writes a node's frames to a file. A nil recorder does nothing.
type recorder struct {
	out  *os.File
	file *capture.File
}

// recorder creates the file of --capture, if that is given.
func (c *ClusterFlags) recorder() (*recorder, error) {
	if c.captureTo == "" {
		return nil, nil
	}
	out, err := os.Create(c.captureTo)
	if err != nil {
		return nil, c.captureError(err)
	}
	return &recorder{out: out, file: capture.NewFile(out)}, nil
}

// goodbyes is how long a node that is interrupted is recorded on: less than the time after which
// its process is killed if it has not ended (endTimeout).
const goodbyes = endTimeout / 2

// endAfter has the recording end, and its file be whole, a while after ctx's end, whatever the node
// does then, which may not look at ctx before its process is killed.
func (r *recorder) endAfter(ctx context.Context) {
	if r == nil {
		return
	}
	context.AfterFunc(ctx, func() {
		time.AfterFunc(goodbyes, func() { _ = r.file.Close() }) // close returns its error, too
	})
}

// checkCapture tells, before there are other nodes to wait for the one that records, that it could
// not create the file of --capture. It changes nothing, and leaves a pipe to its reader.
func (c *ClusterFlags) checkCapture() error {
	if c.captureTo == "" {
		return nil
	}
	info, err := os.Stat(c.captureTo)
	isThere := err == nil
	if isThere && !info.Mode().IsRegular() && !info.IsDir() {
		return nil
	}
	out, err := os.OpenFile(c.captureTo, os.O_WRONLY|os.O_CREATE, 0o666)
	if err == nil {
		err = out.Close()
		if !isThere {
			err = errors.Join(err, os.Remove(c.captureTo))
		}
	}
	return c.captureError(err)
}

// captureError says which file could not be created.
func (c *ClusterFlags) captureError(err error) error {
	var path *fs.PathError
	if errors.As(err, &path) {
		return fmt.Errorf("--capture %s: %w", c.captureTo, path.Err)
	}
	return err
}

// wrap has a node's links recorded, each as an interface of the file.
func (r *recorder) wrap(links []transport.Link) error {
	if r == nil {
		return nil
	}
	for i, l := range links {
		recorded, err := r.file.Wrap(l)
		if err != nil {
			return err
		}
		links[i] = recorded
	}
	return nil
}

func (r *recorder) close() error {
	if r == nil {
		return nil
	}
	return errors.Join(r.file.Close(), r.out.Close())
}
