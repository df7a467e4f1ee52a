package clienttest

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"

	"github.com/sluice-go/sluice/transport"
)

// serving starts a stand-in for the partner of an example.
func serving(answer http.HandlerFunc) (url string, stop func()) {
	s := httptest.NewServer(answer)
	return s.URL, s.Close
}

// report prints how a call of an example has ended.
func report(what string, err error) {
	var notSent *transport.Error
	switch {
	case errors.As(err, &notSent):
		fmt.Println("not sent, come back in", notSent.Wait)
	case err != nil:
		fmt.Println(err)
	default:
		fmt.Println(what)
	}
}
