package feedback

// Anthropic is the Classifier for Anthropic, which tells of its own overload by the
// status 529 and of a limit by 429. Its times stand in headers that [Default] reads.
func Anthropic(a *Answer) Verdict {
	if a.Status() == statusOverloaded {
		return overload(a)
	}
	return Default(a)
}
