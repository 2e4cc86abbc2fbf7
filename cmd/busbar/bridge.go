package main

// What stands here serves commands whose questions have not moved to package query yet; it goes with them.

import (
	"io"

	"busbar.dev/cluster"
	"busbar.dev/report"
)

func (e *env) load(words []string, o common) (*cluster.Cluster, error) { return e.cluster(o, words...) }

// later is a progress line that appears only when something takes more than a second.
func (e *env) later(o common, text string) func() {
	show := e.progressOf(o)
	if show == nil {
		return func() {}
	}
	show(text)
	return func() { show("") }
}

// orEmpty makes an empty list print as [] rather than null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func writeIndented(w io.Writer, v any) error { return report.JSON(w, v) }
