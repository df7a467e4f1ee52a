// Package redisserver runs a redis-server of one's own: on a free port of the loopback,
// with an empty folder, persisting nothing.
package redisserver

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"time"
)

// ErrMissing says that there is no server to run.
var ErrMissing = errors.New("no redis-server or valkey-server in the PATH")

// A Server is a process that can be stopped, killed and started anew, on the same port.
type Server struct {
	Addr string

	binary string
	dir    string
	args   []string
	cmd    *exec.Cmd
}

// Start runs a server, with more arguments if there are any.
func Start(args ...string) (*Server, error) {
	s := &Server{args: args}
	for _, name := range []string{"redis-server", "valkey-server"} {
		if path, err := exec.LookPath(name); err == nil {
			s.binary = path
			break
		}
	}
	if s.binary == "" {
		return nil, ErrMissing
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s.Addr = l.Addr().String()
	if err := l.Close(); err != nil {
		return nil, err
	}
	if s.dir, err = os.MkdirTemp("", "sluice-redis-"); err != nil {
		return nil, err
	}
	if err := s.Run(); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

// Run starts the process, after Start or [Server.Kill], and returns when it answers.
func (s *Server) Run() error {
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	s.cmd = exec.Command(s.binary, append([]string{"--bind", "127.0.0.1", "--port", port, "--dir", s.dir,
		"--save", "", "--appendonly", "no", "--logfile", "server.log", "--databases", "4",
		"--repl-diskless-sync-delay", "0"}, s.args...)...)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	for range 3000 {
		if s.ping() {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("%s at %s: no answer", s.binary, s.Addr)
}

func (s *Server) ping() bool {
	c, err := net.DialTimeout("tcp", s.Addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	buf := make([]byte, 64)
	if c.SetDeadline(time.Now().Add(time.Second)) != nil {
		return false
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	n, _ := c.Read(buf)
	return strings.HasPrefix(string(buf[:n]), "+PONG")
}

// Kill ends the process at once, and with it all that it knew.
func (s *Server) Kill() error {
	if s.cmd == nil {
		return nil
	}
	err := s.cmd.Process.Kill()
	_ = s.cmd.Wait() // it was killed, says the error
	s.cmd = nil
	return err
}

// Close ends the process and removes its folder.
func (s *Server) Close() error { return errors.Join(s.Kill(), os.RemoveAll(s.dir)) }
