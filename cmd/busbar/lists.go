package main

import (
	"fmt"
	"io"
	"strings"

	"busbar/cluster"
	"busbar/hardware"
	"busbar/internal/texttab"
	"busbar/unit"
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
	t := texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "GPUs", Align: texttab.Right}, {Head: "NICs", Align: texttab.Right}, {Head: "what it is"}, {Head: "source"}}}
	for _, p := range all {
		t.Row(p.Name, fmt.Sprint(p.GPUs), fmt.Sprint(p.NICs), p.Summary, p.Source)
	}
	return t.Write(e.stdout)
}

type hardwareCmd struct {
	common
	Table string `arg:"" optional:"" enum:"all,links,gpu,nic,switch" default:"all" help:"all, links, gpu, nic or switch."`
}

// Help ends with an example.
func (hardwareCmd) Help() string {
	return "Rates are one direction; the duplex figure stands beside it, and which of the two the maker quotes. Peaks are dense.\n\nExample:\n  busbar hardware links\n  busbar hardware gpu --json"
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
		table       func() *texttab.Table
	}{
		{"links", "Links and networks (one direction computed with; duplex as the sum of both)", linkTable},
		{"gpu", "Accelerators (dense peaks)", gpuTable},
		{"nic", "Network cards", nicTable},
		{"switch", "Switches", switchTable},
	} {
		if !want(part.name) {
			continue
		}
		if err := section(e.stdout, part.title, part.table()); err != nil {
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

func linkTable() *texttab.Table {
	right := texttab.Right
	t := &texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "of"}, {Head: "one direction", Align: right}, {Head: "in bits", Align: right}, {Head: "duplex", Align: right}, {Head: "maker quotes"}, {Head: "latency", Align: right}, {Head: "source"}}}
	for _, r := range hardware.Interconnects() {
		latency := ""
		if r.Latency.Known() {
			latency = r.Latency.Value.String()
		}
		t.Row(r.Name, r.Scope, r.OneWay.String(), r.OneWay.Bits(), r.Duplex.String(), string(r.Quoted), latency, r.Source)
	}
	return t
}

func gpuTable() *texttab.Table {
	right := texttab.Right
	t := &texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "title"}, {Head: "memory", Align: right}, {Head: "memory rate", Align: right}, {Head: "bf16 dense", Align: right}, {Head: "fp8 dense", Align: right}, {Head: "links"}, {Head: "PCIe"}, {Head: "source"}}}
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
		t.Row(g.Name, g.Title, g.Memory.String(), g.HBM.String(), peak(cluster.BF16), peak(cluster.FP8), links, fmt.Sprintf("gen %d x%d", g.PCIeGen, g.Lanes), g.Source)
	}
	return t
}

func nicTable() *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "fastest port", Align: texttab.Right}, {Head: "PCIe"}, {Head: "PCI ids"}, {Head: "source"}}}
	for _, n := range hardware.NICs() {
		t.Row(n.Name, n.Rate.Bits(), fmt.Sprintf("gen %d x%d", n.PCIeGen, n.Lanes), strings.Join(n.PCI, " "), n.Source)
	}
	return t
}

func switchTable() *texttab.Table {
	t := &texttab.Table{Columns: []texttab.Column{{Head: "name"}, {Head: "kind"}, {Head: "ports", Align: texttab.Right}, {Head: "port rate", Align: texttab.Right}, {Head: "source"}}}
	for _, s := range hardware.Switches() {
		t.Row(s.Name, string(s.Kind), fmt.Sprint(s.Ports), s.Rate.Bits(), s.Source)
	}
	return t
}

type demoCmd struct {
	common
}

// Help ends with an example.
func (demoCmd) Help() string {
	return "Maps and audits this machine, then the reference cluster: two nodes of four A100s that share one InfiniBand port each.\n\nExample:\n  busbar demo"
}

// Run maps this machine and the reference cluster.
func (c demoCmd) Run(e *env) error {
	if c.JSON {
		m := mapCmd{common: c.common, Sources: []string{"baskerville:2"}, Output: "json"}
		return m.Run(e)
	}
	for i, sources := range [][]string{nil, {"baskerville:2"}} {
		title := []string{"This machine ($ busbar map)", "The reference cluster ($ busbar map baskerville:2)"}[i]
		fmt.Fprintf(e.stdout, "── %s ──\n", title)
		m := mapCmd{common: c.common, Sources: sources, Output: "text"}
		if err := m.Run(e); err != nil {
			return err
		}
		fmt.Fprintln(e.stdout)
	}
	return nil
}
