//go:build !linux

package precise

import (
	"errors"
	"time"
)

// clockIsReal does not matter where there is no kernelTimer.
func clockIsReal() bool { return false }

// A kernelTimer is for Linux.
type kernelTimer struct{}

func newKernelTimer() (*kernelTimer, error) { return nil, errors.ErrUnsupported }

func (*kernelTimer) arm(time.Duration) error { return errors.ErrUnsupported }
func (*kernelTimer) watch(func() bool) error { return errors.ErrUnsupported }
func (*kernelTimer) interrupt()              {}
