// Package target finds where an example's requests go: to a partner of the user's,
// or to one that the example brings along.
package target

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/sluice-go/sluice/internal/partner"
)

// Open returns the base URL of the partner, without a slash at the end. If base is
// empty, it starts a partner on loopback that behaves as c says, until stop is
// called.
func Open(base string, c partner.Config) (baseURL string, stop func(), err error) {
	if base == "" {
		p, err := partner.New(c)
		if err != nil {
			return "", nil, err
		}
		return p.Start()
	}
	u, err := url.Parse(base)
	if err != nil {
		// Without what url.Error quotes: a URL may hold a password.
		if urlError := (*url.Error)(nil); errors.As(err, &urlError) {
			err = urlError.Err
		}
		return "", nil, fmt.Errorf("-url: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return "", nil, errors.New("-url: must be http://host or https://host, with a path or without")
	}
	if u.RawQuery != "" || u.Fragment != "" {
		return "", nil, errors.New("-url: must have no query and no fragment")
	}
	return strings.TrimRight(u.String(), "/"), func() {}, nil
}
