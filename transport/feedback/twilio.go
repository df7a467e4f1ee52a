package feedback

// Twilio is the Classifier for Twilio. Its error 20429 (too many requests) says that
// the request was not processed, and so does 21611 (the sender's queue of messages is
// full), whose status is no sure sign. Neither states a time beyond Retry-After.
func Twilio(a *Answer) Verdict {
	v := Default(a)
	if a.Status() < 400 || a.Status() >= 500 {
		return v
	}
	switch parseJSON(a.Body()).get("code").text() {
	case "20429", "21611":
		if !v.Refused {
			v = refusal(a)
		}
		v.Unprocessed = true
	}
	return v
}
