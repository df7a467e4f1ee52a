package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"time"

	goredis "github.com/redis/go-redis/v9"
)

var errNoRedis = errors.New("there is no redis-server or valkey-server in PATH")

// A redisServer is a server of the trial's own: on loopback, in an empty folder, and
// without anything on disk.
type redisServer struct {
	addr   string
	dir    string
	cmd    *exec.Cmd
	client *goredis.Client
}

func startRedis() (*redisServer, error) {
	path, err := exec.LookPath("redis-server")
	if err != nil {
		if path, err = exec.LookPath("valkey-server"); err != nil {
			return nil, errNoRedis
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	addr := l.Addr().(*net.TCPAddr)
	l.Close()
	dir, err := os.MkdirTemp("", "sluice-redis-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(path, "--port", strconv.Itoa(addr.Port), "--bind", "127.0.0.1",
		"--dir", dir, "--save", "", "--appendonly", "no", "--daemonize", "no")
	if err := cmd.Start(); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	s := &redisServer{addr.String(), dir, cmd, goredis.NewClient(&goredis.Options{Addr: addr.String()})}
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		err := s.client.Ping(context.Background()).Err()
		if err == nil {
			return s, nil
		}
		if time.Now().After(end) {
			s.stop()
			return nil, fmt.Errorf("%s does not answer: %w", path, err)
		}
	}
}

func (s *redisServer) stop() {
	s.client.Close()
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	os.RemoveAll(s.dir)
}

// score is what a server has done so far.
type score struct {
	scripts int64         // that it has run
	cpu     time.Duration // user and system
}

var (
	scriptCalls = regexp.MustCompile(`cmdstat_eval(?:sha)?:calls=(\d+)`)
	usedCPU     = regexp.MustCompile(`used_cpu_(?:sys|user):([0-9.]+)`)
)

func (s *redisServer) score() (score, error) {
	info, err := s.client.Info(context.Background(), "commandstats", "cpu").Result()
	if err != nil {
		return score{}, err
	}
	var sc score
	for _, m := range scriptCalls.FindAllStringSubmatch(info, -1) {
		n, _ := strconv.ParseInt(m[1], 10, 64)
		sc.scripts += n
	}
	for _, m := range usedCPU.FindAllStringSubmatch(info, -1) {
		seconds, _ := strconv.ParseFloat(m[1], 64)
		sc.cpu += time.Duration(seconds * float64(time.Second))
	}
	return sc, nil
}
