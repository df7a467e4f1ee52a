package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

func TestOrderAlternates(t *testing.T) {
	for _, test := range []struct {
		subjects int
		shared   bool
		want     []int // subjects
	}{
		{1, true, []int{0}},
		{3, false, []int{1, 0, 2, 0}},
		{2, true, []int{1, 0}},
		{5, true, []int{1, 0, 2, 3, 0, 4}},
		{4, true, []int{1, 0, 2, 3, 0}},
	} {
		var got []int
		trials := order(test.subjects, test.shared)
		for i, tr := range trials {
			got = append(got, tr.subject)
			if tr.subject == 0 {
				continue
			}
			if trials[tr.ours].subject != 0 || i-tr.ours > 1 || tr.ours-i > 1 {
				t.Errorf("order(%d, %v): trial %d is compared with trial %d", test.subjects, test.shared, i, tr.ours)
			}
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("order(%d, %v) = %v, want %v", test.subjects, test.shared, got, test.want)
		}
	}
}

// The machine is twice as slow in the second round. Ratios within a round do not see it.
func TestRatiosAreTakenWithinARound(t *testing.T) {
	r := result{scenario: scenario{name: "X/n=1", subjects: []subject{{name: "ours"}, {name: "peer"}}}}
	for i, slow := range []float64{1, 2, 1} {
		r.rounds = append(r.rounds, round{number: i, busy: 0.5 * slow, trials: []trial{
			{subject: 1, ours: 1, found: sample{{"ns/op", 100 * slow}}},
			{subject: 0, found: sample{{"ns/op", 40 * slow}}},
		}})
	}
	if got := r.ratio(1, "ns/op"); got != 0.4 {
		t.Errorf("ratio = %v, want 0.4", got)
	}
	var b strings.Builder
	writeRows(&b, &r)
	const want = "| n=1 (noisy: 3 of 3) | ns/op | 40.0 | 100 (0.40) |\n"
	if b.String() != want {
		t.Errorf("row %q, want %q", b.String(), want)
	}
	const raw = "BenchmarkX/n=1/lib=peer 1 100 ns/op 0 others-%\n"
	if got := line(r.scenario, r.rounds[0].trials[0]); got != raw {
		t.Errorf("line %q, want %q", got, raw)
	}
}

func TestNamesOfScenariosAreUnique(t *testing.T) {
	ours := []string{"sluice", precise.name, grained.name}
	seen := map[string]bool{}
	for _, s := range scenarios() {
		if seen[s.name] {
			t.Errorf("two scenarios are called %s", s.name)
		}
		seen[s.name] = true
		if len(s.subjects) == 0 || !slices.Contains(ours, s.subjects[0].name) {
			t.Errorf("%s measures %v: want a variant of ours first", s.name, s.names())
		}
	}
}

func TestTargets(t *testing.T) {
	known := map[string]scenario{}
	for _, s := range scenarios() {
		known[s.name] = s
	}
	for _, target := range targets {
		s, ok := known[target.scenario]
		if !ok {
			t.Errorf("no scenario %s", target.scenario)
		}
		if target.peer != "" && !slices.Contains(s.names(), target.peer) {
			t.Errorf("%s does not measure %s", s.name, target.peer)
		}
		if s.rounds > 0 && s.rounds < targetRounds {
			t.Errorf("%s has a target and %d rounds", s.name, s.rounds)
		}
	}
}

func TestTargetsAreComputedFromMedians(t *testing.T) {
	r := result{scenario: scenario{name: "X/n=1", subjects: []subject{{name: "ours"}, {name: "peer"}}}}
	for i, theirs := range []float64{100, 80, 300} {
		r.rounds = append(r.rounds, round{number: i, trials: []trial{
			{subject: 1, ours: 1, found: sample{{"ns/op", theirs}}},
			{subject: 0, found: sample{{"ns/op", 40}, {"B", 7}}},
		}})
	}
	for _, test := range []struct {
		target target
		want   string
	}{
		{target{"fast", "X/n=1", "ns/op", "peer", timesAtLeast, 2.5}, "| fast | X/n=1 | ns/op, peer / ours | ≥ 2.5 | 2.500 | yes | 3 |\n"},
		{target{"fast", "X/n=1", "ns/op", "peer", timesAtLeast, 2.6}, "| fast | X/n=1 | ns/op, peer / ours | ≥ 2.6 | 2.500 | **no** | 3 |\n"},
		{target{"cheap", "X/n=1", "ns/op", "peer", shareAtMost, 0.4}, "| cheap | X/n=1 | ns/op, ours / peer | ≤ 0.4 | 0.400 | yes | 3 |\n"},
		{target{"small", "X/n=1", "B", "", ownBelow, 7}, "| small | X/n=1 | B | < 7 | 7.000 | **no** | 3 |\n"},
		{target{"unknown", "X/n=1", "s", "peer", shareAtMost, 1}, "| unknown | X/n=1 | s, ours / peer | ≤ 1 | – | **no** | 3 |\n"},
	} {
		if got := test.target.row(&r); got != test.want {
			t.Errorf("row %q, want %q", got, test.want)
		}
	}
}

func TestKeysAreOfOneLength(t *testing.T) {
	for i, want := range map[int]string{0: "key-000000000000", 123_456: "key-000000123456"} {
		if got := key(i); got != want {
			t.Errorf("key(%d) = %s, want %s", i, got, want)
		}
	}
}

func TestParseTicks(t *testing.T) {
	busy, all := parseTicks("cpu  10 1 5 70 10 1 2 1 0 0\ncpu0 1 2 3\n")
	if busy != 20 || all != 100 {
		t.Errorf("busy %v of %v, want 20 of 100", busy, all)
	}
	if _, all := parseTicks("nothing"); all != 0 {
		t.Errorf("nonsense gives %v ticks", all)
	}
}

func TestNumbers(t *testing.T) {
	for v, want := range map[float64]string{
		math.NaN(): "–", 0: "0", 1234.5: "1234", 12.34: "12.3", 1.2345: "1.234", 0.00012345: "0.000123", -250: "-250",
	} {
		if got := number(v); got != want {
			t.Errorf("number(%v) = %s, want %s", v, got, want)
		}
	}
	if got := quotient(0.0123); got != "0.012" {
		t.Errorf("quotient(0.0123) = %s", got)
	}
	if got := quotient(math.NaN()); got != "–" {
		t.Errorf("quotient(NaN) = %s", got)
	}
}
