//go:build !unix

package redisserver

import (
	"errors"
	"fmt"
)

// Stop needs signals, which this system has not: the error is [errors.ErrUnsupported].
func (s *Server) Stop() error { return fmt.Errorf("redisserver: stop: %w", errors.ErrUnsupported) }

// Continue needs them as well.
func (s *Server) Continue() error {
	return fmt.Errorf("redisserver: continue: %w", errors.ErrUnsupported)
}
