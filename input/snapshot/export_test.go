package snapshot

import (
	"io"

	"busbar.dev/cluster"
	"busbar.dev/internal/unpack"
)

// Read reads an archive as input does, which may be packed.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	in, _, err := unpack.Plain(nil, r)
	if err != nil {
		return nil, err
	}
	return ReadWithin(nil, name, in)
}
