package precise

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A kernelTimer is a timerfd in the care of the runtime's poller.
//
// It is never read. The poller is told of edges only, each expiry is one, and setting
// the timer anew clears what has expired. So there is no system call per wake-up but
// the one that sets the next.
type kernelTimer struct {
	fd   int
	file *os.File // owns fd
	conn syscall.RawConn
}

// From the kernel's headers; the flags are those of open on every architecture.
const (
	clockMonotonic = 1
	timerfdFlags   = syscall.O_NONBLOCK | syscall.O_CLOEXEC
)

// itimerspec is the kernel's struct of that name.
type itimerspec struct {
	interval, value syscall.Timespec
}

func newKernelTimer() (*kernelTimer, error) {
	fd, _, errno := syscall.RawSyscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, timerfdFlags, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("timerfd_create", errno)
	}
	file := os.NewFile(fd, "timerfd")
	// NewFile does not tell whether the poller has taken the descriptor. A file that it
	// does not watch has no deadlines.
	if err := file.SetDeadline(time.Time{}); err != nil {
		file.Close()
		return nil, err
	}
	conn, err := file.SyscallConn()
	if err != nil {
		file.Close()
		return nil, err
	}
	return &kernelTimer{fd: int(fd), file: file, conn: conn}, nil
}

// arm sets the timer to expire once, when d has passed, in place of what was set.
// d must be positive: zero would disarm it.
func (t *kernelTimer) arm(d time.Duration) error {
	spec := itimerspec{value: syscall.NsecToTimespec(int64(d))}
	// It does not block, so the scheduler need not know of it.
	_, _, errno := syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME,
		uintptr(t.fd), 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0)
	if errno != 0 {
		return os.NewSyscallError("timerfd_settime", errno)
	}
	return nil
}

// watch calls pass, and again after each expiry, until it returns true. An expiry
// while pass runs is remembered: what pass arms is not missed.
func (t *kernelTimer) watch(pass func() bool) error {
	return t.conn.Read(func(uintptr) bool { return pass() })
}

// interrupt ends watch with an error, for good. It does not wait for that.
func (t *kernelTimer) interrupt() {
	t.file.SetReadDeadline(time.Unix(1, 0))
}
