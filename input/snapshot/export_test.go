package snapshot

import (
	"io"

	"busbar.dev/cluster"
)

func Read(name string, r io.Reader) (*cluster.Fragment, error) { return ReadWithin(nil, name, r) }
