package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
)

// runTrial measures one subject in one scenario and prints the sample as JSON. The
// process should end after that: callers may still wait.
func runTrial(name string, scale scale, w io.Writer) error {
	wantScenario, wantSubject, _ := strings.Cut(name, ",")
	for _, sc := range scenarios() {
		for _, su := range sc.subjects {
			if sc.name != wantScenario || su.name != wantSubject {
				continue
			}
			found, err := sc.measure(su, scale)
			if err != nil {
				return err
			}
			return json.NewEncoder(w).Encode(found)
		}
	}
	return fmt.Errorf("no trial %q", name)
}

// fork runs a trial in a process of its own. others is the share of the CPUs that other
// processes used meanwhile.
func fork(sc scenario, su subject, scale scale) (found sample, others float64, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, 0, err
	}
	args := []string{"-trial", sc.name + "," + su.name, "-scale", scale.name}
	var complaint bytes.Buffer
	cmd := exec.Command(self, args...)
	cmd.Stderr = &complaint
	around := watch()
	out, err := cmd.Output()
	if err != nil {
		return nil, 0, fmt.Errorf("%s of %s: %w: %s", sc.name, su.name, err, bytes.TrimSpace(complaint.Bytes()))
	}
	others = around.share(cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime())
	if err := json.Unmarshal(out, &found); err != nil {
		return nil, 0, fmt.Errorf("%s of %s: %w", sc.name, su.name, err)
	}
	return found, others, nil
}
