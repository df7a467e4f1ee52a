//go:build !unix

package main

import "time"

// cpuTime returns 0: there is no Getrusage.
func cpuTime() time.Duration { return 0 }
