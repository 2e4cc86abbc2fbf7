package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
)

// Nodes prints the nodes of a fleet as a table, and what is wrong.
func Nodes(w io.Writer, doc *query.NodesDoc) error {
	if len(doc.Nodes) == 0 {
		_, err := fmt.Fprintln(w, "no nodes have joined")
		return err
	}
	heads := []string{"node", "state", ">last beat", ">load", "activity", "version", "findings"}
	if doc.Slurm != nil {
		heads = append(heads, "Slurm")
	}
	out := map[string]string{}
	for _, o := range doc.Slurm {
		out[o.Node] = o.State
		if o.Reason != "" {
			out[o.Node] += ": " + o.Reason
		}
	}
	t := texttab.New(heads...)
	for _, n := range doc.Nodes {
		age, load, doing := "-", "-", "-"
		if n.AgeS >= 0 {
			age = (time.Duration(n.AgeS*10) * 100 * time.Millisecond).String()
		}
		if n.State == fleet.NodeUp {
			load, doing = fmt.Sprintf("%.1f", n.Load), "nothing"
			if n.Progress != nil {
				doing = texttab.Clean(n.Progress.Part)
			}
		}
		wrong := strings.Join(n.Findings, ", ")
		if n.Unhealthy {
			wrong = "BAD: " + wrong
		}
		row := []string{string(n.Name), string(n.State), age, load, doing, texttab.Clean(n.Version), texttab.Clean(wrong)}
		if doc.Slurm != nil {
			row = append(row, texttab.Clean(out[string(n.Name)]))
		}
		t.Row(row...)
	}
	if err := t.Write(w); err != nil {
		return err
	}
	for i := range doc.Findings {
		f := &doc.Findings[i]
		fmt.Fprintf(w, "\n%s: %s\n", f.Severity, texttab.Clean(f.Text))
		if f.Fix != "" {
			fmt.Fprintf(w, "  fix: %s\n", texttab.Clean(f.Fix))
		}
	}
	return nil
}
