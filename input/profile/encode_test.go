package profile_test

import (
	"busbar.dev/input/profile"
	"busbar.dev/internal/test/ringfile"
)

// The tests inside the package cannot import what imports it.
func init() { profile.Encode = ringfile.Encode }
