package nvsmi

import (
	"bytes"
	"fmt"
	"io"

	"busbar.dev/cluster"
)

// The matrices of one sort alone, as tests ask for them.
var (
	matchTopo, readTopoOnly = matricesOf(topoFormat)
	matchP2P, readP2POnly   = matricesOf(p2pFormat)
)

func matricesOf(format string) (match func([]byte) bool, read readFunc) {
	read = func(name string, r io.Reader) (*cluster.Fragment, error) {
		list, err := ReadMatrices(name, r)
		for _, f := range list {
			if f.Format == format {
				return f, nil
			}
		}
		if err == nil {
			err = fmt.Errorf("%s: no matrix of %s", name, format)
		}
		return nil, err
	}
	return func(data []byte) bool {
		_, err := read("x", bytes.NewReader(data))
		return MatchMatrix(data) && err == nil
	}, read
}
