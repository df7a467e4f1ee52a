// Package clienttest holds no code, only tests: well-known client libraries send their
// requests through a Transport of package transport, to a server on loopback that answers
// in the form of their partner.
//
// Each library has a file of its own. It begins with an Example, which shows how to plug
// the library in, and then says what is to be expected of it. One suite checks that for
// all of them:
//
//   - the library's calls leave at the stated pace;
//   - once the partner has refused a call, none reaches it before the stated time;
//   - a local refusal is asked for once and sends nothing, and what the library does
//     without the setting that sees to it;
//   - the typed error can be had from what the library returns.
//
// docs/clients.md tells the same in words.
package clienttest
