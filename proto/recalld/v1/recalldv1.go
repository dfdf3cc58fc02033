// Package recalldv1 is the wire of recalld: what a client can ask, and what it
// is answered. It is generated from the .proto files beside it.
//
// To regenerate: go tool -modfile=buf.mod buf generate.
package recalldv1
