package transport

import (
	"net/url"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestHostKey(t *testing.T) {
	for raw, want := range map[string]string{
		"http://api.example":                            "http://api.example",
		"http://API.example:80/x?secret#y":              "http://api.example",
		"HTTPS://Api.Example:443":                       "https://api.example",
		"https://api.example:":                          "https://api.example",
		"https://api.example:8443/v1":                   "https://api.example:8443",
		"http://api.example:443":                        "http://api.example:443",
		"https://api.example:80":                        "https://api.example:80",
		"http://api.example:8080":                       "http://api.example:8080",
		"http://user:pw@api.example/":                   "http://api.example",
		"http://us%40er:p%3Aw@api.example:80":           "http://api.example",
		"http://[::1]:80/":                              "http://[::1]",
		"http://[2001:DB8::80]/":                        "http://[2001:db8::80]",
		"https://[2001:db8::1]:8443":                    "https://[2001:db8::1]:8443",
		"http://[fe80::1%25en0]:80/":                    "http://[fe80::1]",
		"http://192.0.2.1:80":                           "http://192.0.2.1",
		"http://BÜCHER.example/":                        "http://b%C3%BCcher.example",
		"//api.example/x":                               "//api.example",
		"http:opaque?secret":                            "http:",
		"ws://api.example:80":                           "ws://api.example:80",
		"https://api.example.":                          "https://api.example",
		"https://API.example.:443/":                     "https://api.example",
		"https://api.example.:8443":                     "https://api.example:8443",
		"https://api.example..":                         "https://api.example..",
		"https://.":                                     "https://.",
		"http://192.0.2.1.:80":                          "http://192.0.2.1",
		"http://[2001:0DB8:0:0::0001]:8080":             "http://[2001:db8::1]:8080",
		"http://[0:0:0:0:0:0:0:1%25en0]":                "http://[::1]",
		"http://[::FFFF:192.0.2.1]":                     "http://[::ffff:192.0.2.1]",
		"http://[::ffff:c000:201]":                      "http://[::ffff:192.0.2.1]",
		"https://api.example:0443":                      "https://api.example:0443",
		"https://api-2.example:1":                       "https://api-2.example:1",
		"https://a_b.example":                           "https://a_b.example",
		"https://api.example/a@b:443/https://x.example": "https://api.example",
	} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		require.Equal(t, want, HostKey(u), raw)
	}
}

// Programs that fill in url.URL by hand can get it wrong in ways that url.Parse
// never does.
func TestHostKeyOfHandMadeURL(t *testing.T) {
	for host, want := range map[string]string{
		"user:pw@API.example:80":     "http://api.example",
		"a@b@api.example":            "http://api.example",
		"api.example:80/v1/x":        "http://api.example",
		"api.example?token=x":        "http://api.example",
		"api.example#token":          "http://api.example",
		"api.example/u:pw@other":     "http://api.example",
		"api.example\r\nX-Injected:": "http://api.example__x-injected",
		"fe80::80":                   "http://fe80__80",
		"":                           "http:",
	} {
		u := &url.URL{Scheme: "HTTP", Host: host, Path: "/secret", RawQuery: "secret", Opaque: "//secret"}
		require.Equal(t, want, HostKey(u), host)
	}
}

// FuzzHostKey checks, for URLs as net/http parses them and for the same text put by
// hand where only a host belongs, that nothing but scheme and host decides the key,
// that no other part shows, and that the key of a key is itself.
func FuzzHostKey(f *testing.F) {
	for _, raw := range []string{
		"http://API.example:80/x?secret#y", "https://user:pw@api.example:443", "http://[fe80::1%25En0]:80/",
		"http://%C3%9Cber.example:/", "//x", "http:opaque", "a:b@c/d?e#f", "\x00\n%zz:80", "http://İ.example", "//:a:", "//[::%25\xff]", "//%3A]", "", "https://api.example.:443", "http://a..:80", "http://.:1", "https://[2001:0DB8::0001]:8443", "https://a:0",
	} {
		f.Add(raw)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		byHand := HostKey(&url.URL{Scheme: "http", Host: raw})
		noOtherPart(t, byHand, "http:")

		u, err := url.Parse(raw)
		if err != nil {
			return
		}
		key := HostKey(u)
		noOtherPart(t, key, u.Scheme+":")
		require.Equal(t, HostKey(&url.URL{Scheme: u.Scheme, Host: u.Host}), key, "something else than scheme and host shows")
		if u.Host != "" { // a letter that is not canonical takes the slow path to the same key
			require.Equal(t, HostKey(&url.URL{Scheme: strings.ToUpper(u.Scheme), Host: u.Host}), key)
		}
		again, err := url.Parse(key)
		require.NoError(t, err)
		require.Equal(t, key, HostKey(again))
	})
}

func noOtherPart(t *testing.T, key, prefix string) {
	t.Helper()
	host := strings.TrimPrefix(strings.TrimPrefix(key, prefix), "//")
	require.NotContains(t, host, "@", "userinfo")
	require.NotContains(t, host, "/", "path")
	require.NotContains(t, host, "?", "query")
	require.NotContains(t, host, "#", "fragment")
	require.Equal(t, -1, strings.IndexFunc(host, func(r rune) bool { return r < ' ' || r == 0x7f }), "control character")
}

// The key of nearly every request costs one allocation: the key.
func TestHostKeyIsCheap(t *testing.T) {
	for _, raw := range []string{"https://api.example/v1?x=y", "http://api-2.example:8080/", "https://192.0.2.1"} {
		u, err := url.Parse(raw)
		require.NoError(t, err)
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { _ = HostKey(u) }), 1.0, raw)
	}
}
