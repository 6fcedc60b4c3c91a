package server

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// A folder is synced indeed: one that cannot be is an error.
func TestSyncFolder(t *testing.T) {
	if err := syncFolder(t.TempDir()); err != nil {
		t.Error(err)
	}
	if err := syncFolder("/proc/self"); err == nil && runtime.GOOS == "linux" {
		t.Error("no error of a folder that no kernel syncs")
	}
}

// A change is synced before it takes the old state's place, and the folder afterwards.
func TestStateIsSynced(t *testing.T) {
	file := filepath.Join(t.TempDir(), "state")
	s := testServer(t, file)
	defer s.Close()
	var steps []string
	s.file.disk = disk{
		createTemp: func(folder, pattern string) (stagedFile, error) {
			f, err := os.CreateTemp(folder, pattern)
			return &recordedFile{f, &steps}, err
		},
		syncFolder: func(folder string) error {
			steps = append(steps, "sync folder")
			if folder != filepath.Dir(file) {
				t.Errorf("synced %s", folder)
			}
			return syncFolder(folder)
		},
	}
	s.OnStep(func(step string) error {
		if step == "rename" {
			steps = append(steps, step)
		}
		return nil
	})
	if status, answer := post(t, s, "/v1/reset", ""); status != 200 {
		t.Fatal(answer)
	}
	if got := strings.Join(steps, ", "); got != "write, write, sync, rename, close, sync folder" {
		t.Error(got)
	}
}

type recordedFile struct {
	*os.File
	steps *[]string
}

func (f *recordedFile) Write(b []byte) (int, error) {
	*f.steps = append(*f.steps, "write")
	return f.File.Write(b)
}

func (f *recordedFile) Sync() error {
	*f.steps = append(*f.steps, "sync")
	return f.File.Sync()
}

func (f *recordedFile) Close() error {
	*f.steps = append(*f.steps, "close")
	return f.File.Close()
}
