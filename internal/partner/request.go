package partner

import (
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
)

// maxBody is the longest request body that is read.
const maxBody = 64 << 10

// readJSON reads the JSON document in the body of r into v and returns the bytes
// that it read. Fields that v does not have are ignored, as partners do.
func readJSON(w http.ResponseWriter, r *http.Request, v any) ([]byte, *problem) {
	mediaType, _, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || mediaType != "application/json" {
		return nil, &problem{
			status: http.StatusUnsupportedMediaType,
			kind:   "unsupported-media-type",
			detail: "the content type must be application/json",
		}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if tooLong := (*http.MaxBytesError)(nil); errors.As(err, &tooLong) {
		return nil, &problem{
			status: http.StatusRequestEntityTooLarge,
			kind:   "content-too-large",
			detail: "the body must not be longer than 64 KiB",
		}
	}
	if err != nil {
		return nil, badRequest("the body ended too early")
	}
	// The error is not passed on: it would quote the body.
	if err := json.Unmarshal(body, v); err != nil {
		return nil, badRequest("the body must be one JSON object with fields of the right types")
	}
	return body, nil
}

// badRequest is the answer to what cannot be understood.
func badRequest(detail string) *problem {
	return &problem{status: http.StatusBadRequest, kind: "bad-request", detail: detail}
}

// unprocessable is the answer to what can be understood but makes no sense.
func unprocessable(detail string) *problem {
	return &problem{status: http.StatusUnprocessableEntity, kind: "unprocessable-content", detail: detail}
}
