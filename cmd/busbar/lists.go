package main

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
)

type presetsCmd struct {
	common
}

// Help ends with an example.
func (presetsCmd) Help() string {
	return "A preset is a cluster by name, with an optional node count: dgx-h100:16.\n\nExample:\n  busbar presets\n  busbar map baskerville:2"
}

// Run lists the presets.
func (c presetsCmd) Run(e *env) error {
	all := hardware.Presets()
	if c.JSON {
		return writeIndented(e.stdout, map[string]any{"presets": all})
	}
	right := texttab.Right
	t := texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "nodes", Align: right}, {Head: "GPUs", Align: right}, {Head: "NICs", Align: right}, {Head: "what one node is"}}}
	var bare []string
	for _, p := range all {
		if p.GPUs == 1 && p.NICs == 0 {
			bare = append(bare, p.Name)
			continue
		}
		t.Row(p.Name, fmt.Sprint(p.Nodes), fmt.Sprint(p.GPUs), fmt.Sprint(p.NICs), p.Summary)
		if c.Verbose {
			t.Row("", "", "", "", "source: "+p.Source)
		}
	}
	if err := t.Write(e.stdout); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout, "\nnodes: how many a name without :COUNT means. Sources: -v or --json. Single GPUs, without a NIC:")
	for _, line := range texttab.Flow(bare, ", ", max(e.text(e.stdout, common{}).Width-2, 78)) {
		fmt.Fprintln(e.stdout, " ", line)
	}
	return nil
}

type hardwareCmd struct {
	common
	Table string `arg:"" optional:"" enum:"all,links,gpu,nic,switch" default:"all" help:"all, links, gpu, nic or switch."`
}

// Help ends with an example.
func (hardwareCmd) Help() string {
	return "-v prints the source below every row; --json has them too. Rates are one direction; the duplex figure stands beside it, and which of the two the maker quotes. Peaks are dense.\n\nExample:\n  busbar hardware links\n  busbar hardware gpu --json"
}

// Run lists the catalogue.
func (c hardwareCmd) Run(e *env) error {
	want := func(name string) bool { return c.Table == "all" || c.Table == name }
	if c.JSON {
		out := map[string]any{}
		if want("links") {
			out["links"] = hardware.Interconnects()
		}
		if want("gpu") {
			out["gpus"] = hardware.GPUs()
		}
		if want("nic") {
			out["nics"] = hardware.NICs()
		}
		if want("switch") {
			out["switches"] = hardware.Switches()
		}
		return writeIndented(e.stdout, out)
	}
	for _, part := range []struct {
		name, title string
		table       func(sources bool) *texttab.Table
	}{
		{"links", "Links and networks (one direction computed with; duplex as the sum of both)", linkTable},
		{"gpu", "Accelerators (dense peaks)", gpuTable},
		{"nic", "Network cards", nicTable},
		{"switch", "Switches", switchTable},
	} {
		if !want(part.name) {
			continue
		}
		if err := section(e.stdout, part.title, part.table(c.Verbose)); err != nil {
			return err
		}
	}
	return nil
}

func section(w io.Writer, title string, t *texttab.Table) error {
	fmt.Fprintln(w, title)
	if err := t.Write(w); err != nil {
		return err
	}
	_, err := fmt.Fprintln(w)
	return err
}

// cite adds a row's source below it.
func cite(t *texttab.Table, sources bool, source string) {
	if sources {
		t.Row("  source: " + source)
	}
}

func linkTable(sources bool) *texttab.Table {
	right := texttab.Right
	t := &texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "of"}, {Head: "one direction", Align: right}, {Head: "in bits", Align: right}, {Head: "duplex", Align: right}, {Head: "maker quotes"}, {Head: "latency", Align: right}}}
	for _, r := range hardware.Interconnects() {
		latency := ""
		if r.Latency.Known() {
			latency = r.Latency.Value.String()
		}
		t.Row(r.Name, r.Scope, r.OneWay.String(), r.OneWay.Bits(), r.Duplex.String(), string(r.Quoted), latency)
		cite(t, sources, r.Source)
	}
	return t
}

func gpuTable(sources bool) *texttab.Table {
	right := texttab.Right
	t := &texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "title"}, {Head: "memory", Align: right}, {Head: "memory rate", Align: right}, {Head: "bf16 dense", Align: right}, {Head: "fp8 dense", Align: right}, {Head: "links"}, {Head: "PCIe"}, {Head: "power", Align: right}}}
	for _, g := range hardware.GPUs() {
		peak := func(d cluster.Dtype) string {
			if v, ok := g.Peak[d]; ok {
				return v.String()
			}
			return "–"
		}
		links := "–"
		if g.Links > 0 {
			links = fmt.Sprintf("%d × %v = %v", g.Links, g.Link, g.Link*unit.Rate(g.Links))
		}
		power := "–"
		if g.TDP > 0 {
			power = fmt.Sprintf("%g W", float64(g.TDP))
		}
		t.Row(g.Name, g.Title, g.Memory.String(), g.HBM.String(), peak(cluster.BF16), peak(cluster.FP8), links, fmt.Sprintf("gen %d x%d", g.PCIeGen, g.Lanes), power)
		cite(t, sources, g.Source)
		if g.TDP > 0 {
			cite(t, sources, "power: "+g.TDPSource)
		}
	}
	return t
}

func nicTable(sources bool) *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "fastest port", Align: texttab.Right}, {Head: "PCIe"}, {Head: "PCI ids"}}}
	for _, n := range hardware.NICs() {
		rate := "–"
		if n.Rate > 0 {
			rate = n.Rate.Bits()
		}
		t.Row(n.Name, rate, fmt.Sprintf("gen %d x%d", n.PCIeGen, n.Lanes), strings.Join(n.PCI, " "))
		cite(t, sources, n.Source)
	}
	return t
}

func switchTable(sources bool) *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "kind"}, {Head: "ports", Align: texttab.Right}, {Head: "port rate", Align: texttab.Right}}}
	for _, s := range hardware.Switches() {
		t.Row(s.Name, string(s.Kind), fmt.Sprint(s.Ports), s.Rate.Bits())
		cite(t, sources, s.Source)
	}
	return t
}
