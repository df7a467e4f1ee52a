package engine

import "fmt"

// Needs are what options need of a Waiter.
type Needs struct {
	Cost     bool
	Adaptive bool
	Settle   bool
	InFlight int // the bound to set; 0: none
}

// Meets has the Waiter do what the options need, and returns why it cannot.
func (w *Waiter) Meets(n Needs) error {
	if n.Cost && w.WaitN == nil {
		return fmt.Errorf("a cost needs a Waiter with WaitN: not a %T", w.Is)
	}
	if n.Adaptive {
		if w.Scale == nil {
			return fmt.Errorf("an adaptive rate needs a Waiter with Scale: not a %T", w.Is)
		}
		if w.CanScale == nil {
			return fmt.Errorf("an adaptive rate needs a KeyedWaiter with CanScale: not a %T", w.Is)
		}
		if err := w.CanScale(); err != nil {
			return fmt.Errorf("an adaptive rate needs a Waiter that can scale: %w", err)
		}
	}
	if n.Settle {
		if w.Depart == nil {
			return fmt.Errorf("to settle needs a Waiter with DepartN and CanSettle: not a %T", w.Is)
		}
		if err := w.CanSettle(); err != nil {
			return fmt.Errorf("to settle needs a Waiter that can: %w", err)
		}
	}
	if n.InFlight > 0 {
		if w.SetMaxInFlight == nil {
			return fmt.Errorf("a bound in flight needs a Waiter with Acquire and Release: not a %T", w.Is)
		}
		if err := w.SetMaxInFlight(n.InFlight); err != nil {
			return fmt.Errorf("in flight: %w", err)
		}
	}
	return nil
}
