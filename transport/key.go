package transport

import (
	"net/netip"
	"net/url"
	"strings"
)

// HostKey names the partner that u belongs to: scheme and host in lower case,
// without the scheme's default port, as in "https://api.example" or
// "http://[2001:db8::1]:8080". Spellings of one name share one key: letters in either
// case, a dot at the end, the default port or none, and the forms of a literal IPv6
// address. Different names do not, though they may reach the same partner; nor do a name
// of other letters than ASCII's and its form "xn--".
//
// Keys end up in errors, metrics and logs, so nothing else of u gets in: no user,
// password, path, query or fragment, and no control character. A key is itself a
// URL, and the key of that URL is the same key.
func HostKey(u *url.URL) string {
	if isCanonical(u.Scheme, u.Host) {
		return u.Scheme + "://" + u.Host
	}
	scheme := strings.ToLower(u.Scheme)
	host := withoutPort(strings.ToLower(withoutZone(bareHost(u.Host))), defaultPort(scheme))
	host = canonicalName(host)
	// URL.String escapes what cannot stand in a host, for instance a line break.
	key := (&url.URL{Scheme: scheme, Host: host}).String()
	if u, err := url.Parse(key); err != nil || u.Host != host {
		// No request can reach such a host. Its key only has to be harmless.
		key = (&url.URL{Scheme: scheme, Host: strings.Map(plain, host)}).String()
	}
	return key
}

// isCanonical reports whether scheme and host are a key as they are. It is for what is
// the case with nearly every request, and does not find out about all that is canonical.
func isCanonical(scheme, host string) bool {
	if scheme != "https" && scheme != "http" {
		return false
	}
	name, port, hasPort := strings.Cut(host, ":")
	if name == "" || name[len(name)-1] == '.' || hasPort && (port == "" || port == defaultPort(scheme)) {
		return false
	}
	for i := range len(name) {
		if c := rune(name[i]); plain(c) != c {
			return false
		}
	}
	for i := range len(port) {
		if port[i] < '0' || port[i] > '9' {
			return false
		}
	}
	return true
}

// canonicalName writes the name in a host, which has a port or not, in the one way for
// it: without the dot at its end, or as the text of an IPv6 address is to be written.
func canonicalName(host string) string {
	if end := strings.LastIndexByte(host, ']'); end > 0 && host[0] == '[' {
		if ip, err := netip.ParseAddr(host[1:end]); err == nil && ip.Is6() {
			return "[" + ip.String() + host[end:]
		}
		return host
	}
	name, port := host, ""
	if i := strings.IndexByte(host, ':'); i >= 0 {
		name, port = host[:i], host[i:]
	}
	// With two dots at the end, or no name before the dot, it is no name of a host.
	if short, ok := strings.CutSuffix(name, "."); ok && short != "" && !strings.HasSuffix(short, ".") {
		name = short
	}
	return name + port
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
// through to any server, but its error would tell the password.
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
