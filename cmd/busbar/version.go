package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"busbar.dev/query"
	"busbar.dev/report"
)

// buildVersion is the release, or devel.
func buildVersion() string {
	d, _ := query.Release{}.Run(context.Background(), query.Env{}) // it cannot fail
	return d.Version
}

// hereCmd is busbar without a word: this machine in a few lines, and what to ask.
type hereCmd struct{}

// hereLines is how much of the map is shown.
const hereLines = 6

// Run maps this machine where it has GPUs.
func (hereCmd) Run(e *env) error {
	doc, err := query.Map{}.Run(e.ctx, e.query(common{Quiet: true}))
	if err != nil || doc.Summary.GPUs == 0 {
		_, err := io.WriteString(e.stdout, "No GPUs are seen here. Ask about a machine by its name or its files:\n"+
			"  busbar predict dgx-h100:2                                  a collective on a preset\n"+
			"  busbar step -c dgx-h100:4 -m llama3-8b                     a training step\n"+
			"  nvidia-smi topo -m > topo.txt; busbar map topo.txt         a machine's topology\n"+
			"  busbar doctor job.log                                      why a job is slow or broken\n"+
			"All commands: busbar --help\n")
		return err
	}
	var text bytes.Buffer
	if err := report.Print(&text, e.text(&text, common{}), report.Map, doc); err != nil {
		return err
	}
	lines := strings.SplitAfterN(text.String(), "\n", hereLines+1)
	_, err = fmt.Fprintf(e.stdout, "%s\nAll of it: busbar map. How fast: busbar predict. A training step: busbar step -m "+
		"MODEL -c FILE.\nMeasure: busbar bench gpu. Why it is slow: busbar doctor LOG. All commands: busbar --help\n",
		strings.Join(lines[:min(len(lines), hereLines)], ""))
	return err
}
