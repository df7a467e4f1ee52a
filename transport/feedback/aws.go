package feedback

import (
	"bytes"
	"encoding/xml"
	"strings"
)

// AWS is the Classifier for the services of AWS, which mostly throttle with a 400
// and name it in an error code: in a header, in JSON or in XML, depending on the
// service. Those codes say that the request was denied, so a 4xx with one of them
// counts as Unprocessed; of a 5xx that is not assumed, nor of a code that tells of KMS,
// which the service asks while it is at work on the request already.
//
// LimitExceededException is not among them: for most services it means that an
// account has as many things as it may have, and no waiting changes that.
func AWS(a *Answer) Verdict {
	v := Default(a)
	if a.Status() < 400 {
		return v
	}
	throttled, denied := awsThrottlingCode(awsCode(a))
	if !throttled {
		return v
	}
	if !v.Refused {
		v = refusal(a)
	}
	v.Trouble = false // it names the limit
	v.Unprocessed = denied && a.Status() < 500
	return v
}

// awsCode returns the error code. Of several in JSON one that throttles counts.
func awsCode(a *Answer) string {
	if kind := a.Header().Get("X-Amzn-Errortype"); kind != "" {
		return kind
	}
	body := bytes.TrimLeft(a.Body(), " \t\r\n")
	if bytes.HasPrefix(body, []byte("<")) {
		return xmlErrorCode(body)
	}
	doc := parseJSON(body)
	for _, key := range [...]string{"__type", "code", "Code"} {
		code := doc.get(key).text()
		if throttled, _ := awsThrottlingCode(code); throttled {
			return code
		}
	}
	return ""
}

// awsThrottlingCode knows the codes that mean too many requests, and those of them by
// which the request was denied before anything was done. A code can have its namespace
// in front of it and an address behind it. Throttled is what SNS calls its
// ThrottledException, and PriorRequestNotComplete is of Route 53.
func awsThrottlingCode(code string) (throttled, denied bool) {
	code = code[strings.LastIndexByte(code, '#')+1:]
	code, _, _ = strings.Cut(code, ":")
	switch strings.TrimSpace(code) {
	case "Throttling", "ThrottlingException", "Throttled", "ThrottledException",
		"RequestThrottled", "RequestThrottledException", "EC2ThrottledException",
		"TooManyRequestsException", "RequestLimitExceeded", "BandwidthLimitExceeded",
		"ProvisionedThroughputExceededException", "SlowDown",
		"PriorRequestNotComplete":
		return true, true
	case "KMSThrottling", "KMSThrottlingException":
		return true, false
	}
	return false, false
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
