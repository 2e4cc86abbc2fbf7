package report

import (
	"io"
	"testing"

	"busbar.dev/cluster"
)

func BenchmarkShow10000Nodes(b *testing.B) {
	c := railed(dgxH100(), 10000, 16)
	for name, show := range map[string]func(io.Writer, *cluster.Cluster) error{
		"svg":  asSVG,
		"text": func(w io.Writer, c *cluster.Cluster) error { return Text(w, c, TextOptions{}) },
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := show(io.Discard, c); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
