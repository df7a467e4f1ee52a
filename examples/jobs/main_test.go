package main

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestJobs(t *testing.T) {
	for _, tt := range []struct {
		name   string
		args   string
		ctrlC  time.Duration // 0: never
		status int
		want   string
	}{
		{"all run", "", 0, 0, `
started   30 of 30, in order: true, at most 4 at a time
pace      10.0 per second (stated: 10/s)
done      30
failed    0
unrun     0
`},
		{"one job", "-n 1", 0, 0, `
started   1 of 1, in order: true, at most 1 at a time
done      1
failed    0
unrun     0
`},
		{"a panic costs one job", "-n 6 -panic 3 -workers 1 -takes 10ms -rate 4/s", 0, 1, `
failed: panicked: job 3 has a bug
started   6 of 6, in order: true, at most 1 at a time
pace      4.0 per second (stated: 4/s)
done      5
failed    1
unrun     0
`},
		{"stopped", "-n 10", 430 * time.Millisecond, 1, `
failed: job 2: context canceled
failed: job 3: context canceled
failed: job 4: context canceled
failed: job 5: context canceled
started   5 of 10, in order: true, at most 4 at a time
pace      10.0 per second (stated: 10/s)
done      1
failed    4
unrun     5 (jobs 6 to 10)
`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.ctrlC > 0 {
					time.AfterFunc(tt.ctrlC, cancel)
				}
				var out, errs strings.Builder
				status := run(ctx, strings.Fields(tt.args), &out, &errs)
				assert.Equal(t, tt.status, status)
				assert.ElementsMatch(t, lines(tt.want), lines(withoutStack(errs.String())+out.String()))
			})
		})
	}
}

func lines(s string) []string { return strings.Split(strings.TrimSpace(s), "\n") }

// withoutStack drops the size of a stack, which is no business of the test.
func withoutStack(s string) string {
	before, after, ok := strings.Cut(s, " (")
	if !ok || !strings.HasPrefix(s, "failed: panicked") {
		return s
	}
	_, after, _ = strings.Cut(after, ")")
	return before + after
}

func TestJobsRefusesBadFlags(t *testing.T) {
	for args, names := range map[string]string{
		"-rate 0/s":  `"0/s"`,
		"-workers 0": "workers 0",
		"-n x":       `"x"`,
		"-n -1":      "-1",
		"foo -n 3":   `"foo"`,
	} {
		var out, errs strings.Builder
		assert.Equal(t, 2, run(t.Context(), strings.Fields(args), &out, &errs), args)
		assert.Contains(t, errs.String(), names)
	}
}
