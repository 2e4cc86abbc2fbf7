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

// Text prints a cluster without findings.
func Text(w io.Writer, c *cluster.Cluster, o TextOptions) error {
	return Print(w, o, func(p *Page, c *cluster.Cluster) { clusterText(p, c, "") }, c)
}

func asSVG(w io.Writer, c *cluster.Cluster) error { return Drawing(c).SVG(w) }
