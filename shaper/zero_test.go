package shaper_test

import (
	"context"
	"reflect"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/sluice-go/sluice/scheduler"
	"github.com/sluice-go/sluice/shaper"
)

// Every method of a Shaper and of a Group that were not made says so, each time.
func TestZeroValues(t *testing.T) {
	for _, zero := range []struct {
		value any
		says  string
	}{
		{new(shaper.Shaper), "shaper: zero Shaper: use New"},
		{new(shaper.Group[string]), "shaper: zero Group: use NewGroup"},
		{new(shaper.Key[string]), "shaper: zero Key: use Group.Of"},
		{new(shaper.Departure), "shaper: zero Departure: use Depart"},
	} {
		v := reflect.ValueOf(zero.value)
		assert.Positive(t, v.NumMethod())
		for range 2 { // no lock is kept
			for i := range v.NumMethod() {
				name := v.Type().Method(i).Name
				assert.PanicsWithValue(t, zero.says, func() { v.Method(i).Call(arguments(t, v.Method(i).Type())) }, name)
			}
		}
	}
}

// arguments returns some that are valid.
func arguments(t *testing.T, f reflect.Type) []reflect.Value {
	valid := []any{
		context.Background(), "key", 1, int64(1), time.Now(), scheduler.PerSecond(1),
		func(context.Context) error { return nil }, func(string, shaper.KeyState) bool { return true }, []byte{},
		func(string) scheduler.Rate { return scheduler.PerSecond(1) }, shaper.Call{}, func(error) {},
		func(scheduler.Scheduler) error { return nil }, true,
	}
	var args []reflect.Value
next:
	for i := range f.NumIn() {
		for _, value := range valid {
			if v := reflect.ValueOf(value); v.Type().AssignableTo(f.In(i)) {
				args = append(args, v)
				continue next
			}
		}
		t.Fatalf("no argument of type %v", f.In(i))
	}
	return args
}
