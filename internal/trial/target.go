package trial

import (
	"regexp"
	"runtime/debug"
	"strings"
)

// target is the command that runs the test of that name, and no other, in any folder of
// the checkout.
func target(test string) string {
	names := strings.Split(test, "/")
	for i, name := range names {
		names[i] = "^" + regexp.QuoteMeta(name) + "$"
	}
	return "go test " + testedPackage() + " -run " + quote(strings.Join(names, "/"))
}

// testedPackage is the import path of the package that this test binary was built from.
func testedPackage() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "work"
	}
	return strings.TrimSuffix(info.Path, ".test")
}

// quote makes one word of s for a shell.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
