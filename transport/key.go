package transport

import (
	"net/url"
	"strings"
)

// HostKey names the partner that u belongs to: scheme and host in lower case,
// without the scheme's default port, as in "https://api.example" or
// "http://[2001:db8::1]:8080". Spellings that reach the same partner share one key.
//
// Keys end up in errors, metrics and logs, so nothing else of u gets in: no user,
// password, path, query or fragment, and no control character. A key is itself a
// URL, and the key of that URL is the same key.
func HostKey(u *url.URL) string {
	scheme := strings.ToLower(u.Scheme)
	host := withoutPort(strings.ToLower(withoutZone(bareHost(u.Host))), defaultPort(scheme))
	// URL.String escapes what cannot stand in a host, for instance a line break.
	key := (&url.URL{Scheme: scheme, Host: host}).String()
	if u, err := url.Parse(key); err != nil || u.Host != host {
		// No request can reach such a host. Its key only has to be harmless.
		key = (&url.URL{Scheme: scheme, Host: strings.Map(plain, host)}).String()
	}
	return key
}

// plain keeps what names of hosts are made of.
func plain(r rune) rune {
	if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '.' || r == '-' {
		return r
	}
	return '_'
}

// bareHost cuts off what url.Parse never leaves in a host. A program that fills in
// url.URL by hand can put a whole "user:password@host/path" there: it will not get
// through to anybody, but its error would tell the password.
func bareHost(host string) string {
	if i := strings.IndexAny(host, "/?#"); i >= 0 {
		host = host[:i]
	}
	return host[strings.LastIndexByte(host, '@')+1:]
}

// withoutZone cuts the zone out of a literal IPv6 address, such as "%eth0": it names
// an interface of this machine and no partner, and may hold bytes that no URL can.
func withoutZone(host string) string {
	zone, end := strings.IndexByte(host, '%'), strings.LastIndexByte(host, ']')
	if !strings.HasPrefix(host, "[") || zone < 0 || end < zone {
		return host
	}
	return host[:zone] + host[end:]
}

// withoutPort cuts off the given port, or an empty one. A port starts at the only
// colon behind the brackets of an IPv6 address; with more colons than that it is no
// port, and stays.
func withoutPort(host, port string) string {
	outside := host[strings.LastIndexByte(host, ']')+1:]
	name, p, _ := strings.Cut(outside, ":")
	if p != "" && p != port {
		return host
	}
	return host[:len(host)-len(outside)+len(name)]
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http":
		return "80"
	case "https":
		return "443"
	}
	return ""
}
