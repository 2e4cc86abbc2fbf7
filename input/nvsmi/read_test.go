package nvsmi

import (
	"io"

	"busbar.dev/cluster"
)

type readFunc func(name string, r io.Reader) (*cluster.Fragment, error)
