package report

import (
	"io"

	"busbar.dev/cluster"
)

// drawn writes what a function draws.
func drawn(w io.Writer) func(*Picture, error) error {
	return func(p *Picture, err error) error {
		if err != nil {
			return err
		}
		return p.SVG(w)
	}
}

func asSVG(w io.Writer, c *cluster.Cluster) error { return Drawing(c).SVG(w) }
