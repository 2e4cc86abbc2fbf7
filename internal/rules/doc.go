// Package rules holds the project's rules as tests: which package may import
// which, that every package explains itself once, and which modules end up in
// the binary.
package rules
