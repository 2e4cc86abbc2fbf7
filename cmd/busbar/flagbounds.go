package main

import (
	"strings"

	"github.com/alecthomas/kong"

	"busbar.dev/query"
)

// outOfBounds reports a flag whose value is below or above what its tags allow. A zero that was typed is no way to ask
// for the usual.
func outOfBounds(k *kong.Context) error {
	for _, p := range k.Path {
		if p.Flag == nil {
			continue
		}
		if err := query.Bounds(p.Flag.Name, p.Flag.Target, p.Flag.Tag.Get("least"), p.Flag.Tag.Get("most")); err != nil {
			return err
		}
	}
	return nil
}

// unreadable is why flags could not be read, in words for people who do not count in bits.
func unreadable(err error) string {
	return strings.ReplaceAll(err.Error(), "a valid 64 bit int", "a whole number of at most 18 digits")
}
