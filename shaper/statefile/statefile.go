// Package statefile keeps the state of a limit in a file, so that its pace outlives the process,
// also one that is killed.
//
//	kept, err := statefile.Keep("pace.state", pace, time.Second)
//	if err != nil {
//		log.Fatal(err)
//	}
//	defer kept.Close()
package statefile

import (
	"bytes"
	"encoding"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"
)

// A Limit is what a file can keep: a *shaper.Shaper, a *shaper.Group, or a schedule of package
// scheduler, which must not be used meanwhile.
type Limit interface {
	encoding.BinaryMarshaler
	encoding.BinaryUnmarshaler
}

// Load gives the limit the state in the file, as a rule before the first call. It is no error if
// there is no such file. An error leaves the limit as it was.
func Load(path string, l Limit) error {
	state, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("statefile: %w", err)
	}
	if err := l.UnmarshalBinary(state); err != nil {
		return fmt.Errorf("statefile: %s: %w", path, err)
	}
	return nil
}

// A File keeps the state of a limit. Make one with [Keep]. Its methods may be called from any
// number of goroutines.
type File struct {
	path  string
	limit Limit
	stop  chan struct{}
	over  chan struct{} // closed when it is no more saved by time
	once  sync.Once

	mu    sync.Mutex // also while the file is written: an older state must not replace a newer one
	saved []byte
}

// Keep loads the limit, as [Load] does, and from then on saves its state every so often, if it has
// changed, until [File.Close]. A period that is not positive, a state that cannot be loaded and a
// file that cannot be written are errors.
//
// A kill loses what has left since the last save: after it so much may leave too early, which is
// at most what the limit allows in a period, and its burst. Where not one call may, call
// [File.Save] when a call has its slot, before it is sent. A kill while the file is written leaves
// the state before that.
//
// One process at a time may keep a file. The state is first written to a file beside it, of its
// name and ".tmp", which is then renamed.
func Keep(path string, l Limit, every time.Duration) (*File, error) {
	if every <= 0 {
		return nil, fmt.Errorf("statefile: save every %v: must be positive", every)
	}
	if err := Load(path, l); err != nil {
		return nil, err
	}
	f := &File{path: path, limit: l, stop: make(chan struct{}), over: make(chan struct{})}
	if err := f.Save(); err != nil {
		return nil, err
	}
	go f.keep(every)
	return f, nil
}

func (f *File) keep(every time.Duration) {
	defer close(f.over)
	ticks := time.NewTicker(every)
	defer ticks.Stop()
	failing := false
	for {
		select {
		case <-ticks.C:
		case <-f.stop:
			return
		}
		err := f.Save()
		if err != nil && !failing { // a disk that is full for hours is told of once
			slog.Error(err.Error())
		}
		failing = err != nil
	}
}

// Save saves the state now, unless the file has it already. When it returns nil, a kill or a
// crash of the machine does not undo it.
func (f *File) Save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	state, err := f.limit.MarshalBinary()
	if err != nil {
		return fmt.Errorf("statefile: %w", err)
	}
	if bytes.Equal(state, f.saved) {
		return nil
	}
	if err := replace(f.path, state); err != nil {
		return fmt.Errorf("statefile: %w", err)
	}
	f.saved = state
	return nil
}

// Close saves the state for the last time: close the limit first, or end its calls. It returns
// what Save does. Closing twice saves twice.
func (f *File) Close() error {
	f.once.Do(func() { close(f.stop) })
	<-f.over
	return f.Save()
}

// replace has the file hold the bytes, or what it held before, whatever happens meanwhile.
func replace(path string, state []byte) error {
	temp := path + ".tmp"
	if err := write(temp, state); err != nil {
		return errors.Join(err, os.Remove(temp))
	}
	if err := os.Rename(temp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

// write writes a file through to the disk. Keys may be telephone numbers: no one else may read it.
func write(path string, state []byte) (err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if _, err := f.Write(state); err != nil {
		return err
	}
	return f.Sync()
}

// syncDir has a rename outlive a crash of the machine, where a folder can be written through.
func syncDir(path string) (err error) {
	if runtime.GOOS == "windows" {
		return nil
	}
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	return dir.Sync()
}
