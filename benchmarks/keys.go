package main

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"
)

// Keys: a million of them, for none of which a call waits. bytes/key is what the heap
// has grown by after a collection, the key's string of 16 bytes included, which is made
// for each key and not kept elsewhere. ns/op@g is an Allow that says yes, of a key at
// random, by g goroutines together, as in a decision.
//
// Then another million are used once each. When none of them owes anything any more,
// forget-ns/key is how long it takes to forget them, and left-bytes/key what of the heap
// is left after that. Limiters that never forget have neither figure.
func keysScenario() scenario {
	return scenario{
		name:     "Keys/keys=1000000",
		rounds:   targetRounds,
		subjects: byKey,
		measure: func(s subject, scale scale) (sample, error) {
			keys := 1_000_000 / scale.crowd
			found, err := measureKeys(s.byKey(rate(time.Second), ample, keys), keys)
			if err != nil {
				return nil, err
			}
			toForget := s.byKey(rate(scale.forget), 1, keys)
			if toForget.len == nil {
				return found, nil
			}
			forgotten, err := measureForgetting(toForget, keys, scale.forget)
			return append(found, forgotten...), err
		},
	}
}

// ample is a burst that no key uses up: each is asked some times.
const ample = 1000

// manyKeys are how many goroutines decide at a million keys.
var manyKeys = []int{1, 2, 16}

func measureKeys(k keyed, keys int) (sample, error) {
	before := settled().HeapAlloc
	if err := fill(k, keys); err != nil {
		return nil, err
	}
	found := sample{{"bytes/key", growth(before) / float64(keys)}}
	for _, goroutines := range manyKeys {
		n := keys / 2
		ops := ask(k, keys, goroutines, n)
		runtime.GC() // so that none is under way that making the strings began
		elapsed, _, yes := decide(ops, n)
		if yes != n {
			return nil, fmt.Errorf("%d of %d decisions were a no", n-yes, n)
		}
		found = append(found, figure{fmt.Sprintf("ns/op@%d", goroutines), float64(elapsed.Nanoseconds()) / float64(n)})
	}
	return found, nil
}

// fill uses each key once.
func fill(k keyed, keys int) error {
	for i := range keys {
		if !k.allow(key(i)) {
			return fmt.Errorf("key %d was refused", i)
		}
	}
	return nil
}

// growth returns by how much more of the heap is in use than before.
func growth(before uint64) float64 { return float64(settled().HeapAlloc) - float64(before) }

// ask returns functions that ask for keys at random, n times in all. Each time the string
// is a new one, in the cache of the processor, as that of a request which was just read;
// what is compared with it is not.
func ask(k keyed, keys, goroutines, n int) []func() bool {
	ops := make([]func() bool, goroutines)
	for g := range ops {
		asked := make([]string, n/goroutines+1)
		for i := range asked {
			asked[i] = key(rand.IntN(keys))
		}
		next := 0
		ops[g] = func() bool {
			next++
			return k.allow(asked[next-1])
		}
	}
	return ops
}

// key returns a new string of 16 bytes.
func key(i int) string {
	const digits = 12
	k := []byte("key-000000000000")
	for at := len(k) - 1; at >= len(k)-digits; at-- {
		k[at] += byte(i % 10)
		i /= 10
	}
	return string(k)
}

func measureForgetting(k keyed, keys int, owes time.Duration) (sample, error) {
	before := settled().HeapAlloc
	if err := fill(k, keys); err != nil {
		return nil, err
	}
	if n := k.len(); n != keys {
		return nil, fmt.Errorf("%d of %d keys are remembered, though all still owe something", n, keys)
	}
	time.Sleep(owes)
	began := time.Now()
	n := k.len()
	took := time.Since(began)
	if n != 0 {
		return nil, fmt.Errorf("%d of %d keys are remembered, though none owes anything", n, keys)
	}
	left := growth(before)
	runtime.KeepAlive(k.len) // what is left has the limiter in it
	return sample{
		{"forget-ns/key", float64(took.Nanoseconds()) / float64(keys)},
		{"left-bytes/key", left / float64(keys)},
	}, nil
}
