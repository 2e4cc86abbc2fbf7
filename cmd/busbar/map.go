package main

import (
	"errors"
	"fmt"

	"busbar.dev/ask"
	"busbar.dev/cluster"
	"busbar.dev/query"
)

type mapCmd struct {
	common
	Sources []string `arg:"" optional:"" name:"source" help:"Files in any known format, - for standard input, a preset (dgx-h100:16), a folder of such files or with a copy of /sys and /proc, HOSTLIST=FILE, FILE:COUNT (default: this machine)."`
	query.Given
	Output string   `short:"o" placeholder:"FORMAT" default:"text" help:"Output: text, yaml, json, matrix, svg, nccl-xml, slurm, slurm-yaml, kube; FORMAT=FILE, or a name with a known ending, writes a file; - is text (default text)."`
	Audit  bool     `help:"Print findings only; exit 1 when there are any above note."`
	Path   []string `placeholder:"FROM,TO" sep:"none" help:"Print the path between two devices: node0/gpu0,node1/gpu3. Repeatable."`
	Width  int      `default:"0" hidden:""`
}

// Help says what can be read and ends with examples.
func (mapCmd) Help() string {
	return "Without arguments, reads this machine. Files that it can read:\n\n" +
		"Nodes: nvidia-smi (topo -m, topo -p2p, -L, -q, -q -x, --query-gpu, nvlink), rocm-smi --showtopo, NCCL and RCCL " +
		"topology XML, NCCL graph XML, lstopo XML, NCCL logs.\n\n" +
		"Fabrics: ibnetdiscover, iblinkinfo, ibstat, ibstatus, ibv_devinfo, show_gids, perfquery, ibqueryerrors, " +
		"ibdiagnet2.lst, .net_dump and .db_csv, UFM's links, ethtool (also -i, -k, -g, -S), lldpctl, LLDP neighbours of " +
		"SONiC, NVUE and Arista switches.\n\n" +
		"Schedulers and clouds: Slurm topology.conf and .yaml, scontrol show topology, Kubernetes nodes, topograph models, " +
		"instance topologies of AWS, Google, Oracle and Azure.\n\n" +
		"Measurements: p2pBandwidthLatencyTest, nvbandwidth, nccl-tests.\n\n" +
		"Cluster files: busbar's own (docs/format/cluster.md).\n\n" +
		"The format is recognised by content; several sources join into one cluster. Nodes that differ in little are " +
		"described once, with what differs; -v describes all.\n\n" +
		"Examples:\n" +
		"  busbar map\n" +
		"  busbar map dgx-h100:16 --audit\n" +
		"  busbar map docs/examples/topo.txt:2 -o node.svg\n" +
		"  busbar map gpu001=docs/examples/topo.txt docs/examples/two-types.yaml -o cluster.yaml\n" +
		"  busbar map cluster.yaml --path gpu001/gpu0,big1/gpu3\n" +
		"  nvidia-smi topo -m | busbar map -"
}

// Run answers one of map's three questions.
func (c *mapCmd) Run(e *env) error {
	a := &ask.Answer{Env: e.query(c.common)}
	t, err := c.target(e.forms(ask.Map, a, c.common))
	if err != nil {
		return err
	}
	q, question := ask.Map, any(&query.Map{Sources: c.Sources, Given: c.Given})
	switch {
	case c.Audit:
		q, question = ask.Audit, &query.Audit{Sources: c.Sources, Given: c.Given}
	case len(c.Path) > 0:
		q, question = ask.Path, &query.Path{Sources: c.Sources, Path: c.Path}
	}
	if a.Document, err = q.Run(e.ctx, question, a.Env); err != nil {
		return err
	}
	var warnings []cluster.Warning // that what is written does not have
	switch d := a.Document.(type) {
	case *query.AuditDoc:
		warnings = d.Warnings
	case *query.MapDoc:
		if t.form != "text" && t.form != "json" {
			warnings = d.Warnings
		}
	}
	for _, w := range warnings {
		c.note(e, w.String())
	}
	return wrong(a.Document, e.forms(q, a, c.common).write(e, t))
}

// target says in which format to write and where, and refuses flags that contradict each other.
func (c *mapCmd) target(f forms) (target, error) {
	t, err := f.one(c.Output, c.JSON)
	plain := t.form == "text" || t.form == "json"
	switch {
	case err != nil:
		return t, err
	case c.Audit && len(c.Path) > 0:
		return t, errors.New("--audit and --path are two questions; ask one at a time")
	case c.Audit && !plain:
		return t, fmt.Errorf("--audit prints findings, as text or with --json; -o %s is for the map: run it without --audit",
			c.Output)
	case len(c.Path) > 0 && !plain:
		return t, fmt.Errorf("--path prints paths, as text or with --json; -o %s is for the map: run it without --path",
			c.Output)
	}
	return t, nil
}
