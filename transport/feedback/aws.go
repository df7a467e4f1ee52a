package feedback

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// AWS is the Classifier for the services of AWS, which mostly throttle with a 400
// and name it in an error code: in a header, in JSON or in XML, depending on the
// service. Those codes say that the request was denied, so a 4xx with one of them
// counts as Unprocessed; of a 5xx that is not assumed.
//
// LimitExceededException is not among them: for most services it means that an
// account has as many things as it may have, and no waiting changes that.
func AWS(a *Answer) Verdict {
	v := Default(a)
	if a.Status() < 400 || !awsThrottled(a) {
		return v
	}
	if !v.Refused {
		v = refusal(a)
	}
	v.Unprocessed = a.Status() < 500
	return v
}

func awsThrottled(a *Answer) bool {
	if kind := a.Header().Get("X-Amzn-Errortype"); kind != "" {
		return awsThrottlingCode(kind)
	}
	body := bytes.TrimLeft(a.Body(), " \t\r\n")
	if bytes.HasPrefix(body, []byte("<")) {
		return awsThrottlingCode(xmlErrorCode(body))
	}
	doc := parseJSON(body)
	for _, key := range [...]string{"__type", "code", "Code"} {
		if awsThrottlingCode(doc.get(key).text()) {
			return true
		}
	}
	return false
}

// awsThrottlingCode knows the codes that mean too many requests. A code can have its
// namespace in front of it and an address behind it.
func awsThrottlingCode(code string) bool {
	code = code[strings.LastIndexByte(code, '#')+1:]
	code, _, _ = strings.Cut(code, ":")
	switch strings.TrimSpace(code) {
	case "Throttling", "ThrottlingException", "ThrottledException",
		"RequestThrottled", "RequestThrottledException", "EC2ThrottledException",
		"TooManyRequestsException", "RequestLimitExceeded", "BandwidthLimitExceeded",
		"ProvisionedThroughputExceededException", "SlowDown":
		return true
	}
	return false
}

// xmlErrorCode returns the text of the first Code within an Error.
func xmlErrorCode(body []byte) string {
	d := xml.NewDecoder(bytes.NewReader(body))
	var open []string
	for {
		token, err := d.Token()
		if err != nil {
			return ""
		}
		switch token := token.(type) {
		case xml.StartElement:
			open = append(open, token.Name.Local)
		case xml.EndElement:
			open = open[:len(open)-1] // the decoder has seen to it that they match
		case xml.CharData:
			if n := len(open); n >= 2 && open[n-1] == "Code" && open[n-2] == "Error" {
				return string(token)
			}
		}
	}
}
