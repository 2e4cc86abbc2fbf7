package nvsmi

import (
	"io"

	"busbar/cluster"
)

type readFunc func(name string, r io.Reader) (*cluster.Fragment, error)
