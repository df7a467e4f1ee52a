//go:build unix

package redisserver

import (
	"fmt"
	"syscall"
)

// Stop makes the process hang, with all its connections, until [Server.Continue]. It
// returns when the process has stopped: the signal alone says nothing of when.
func (s *Server) Stop() error {
	if err := s.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	for {
		var status syscall.WaitStatus
		switch _, err := syscall.Wait4(s.cmd.Process.Pid, &status, syscall.WUNTRACED, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return fmt.Errorf("%s at %s: not stopped: %w", s.binary, s.Addr, err)
		case !status.Stopped():
			return fmt.Errorf("%s at %s: not stopped: it has ended", s.binary, s.Addr)
		default:
			return nil
		}
	}
}

// Continue lets it go on.
func (s *Server) Continue() error { return s.cmd.Process.Signal(syscall.SIGCONT) }
