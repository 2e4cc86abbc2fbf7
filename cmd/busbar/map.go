package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/audit"
	"busbar.dev/input/clusterfile"

	"busbar.dev/input/k8s"
	"busbar.dev/input/ncclxml"
	"busbar.dev/input/slurm"
	"busbar.dev/report"
)

type mapCmd struct {
	common
	Sources []string `arg:"" optional:"" name:"source" help:"Files in any known format, - for standard input, a preset (dgx-h100:16), a folder that holds a machine's sys and proc, HOST=FILE, FILE:COUNT. None: this machine."`
	Output  string   `short:"o" placeholder:"FORMAT" default:"text" help:"text, yaml, json, matrix, svg, dot, nccl-xml, slurm, slurm-yaml, kube; FORMAT=FILE writes to a file, and so does a file name whose ending says the format; - is text."`
	Audit   bool     `help:"Print the findings only; exit 1 when there are any beyond notes."`
	Path    []string `placeholder:"FROM,TO" sep:"none" help:"Print the path between two devices: node0/gpu0,node1/gpu3. Repeatable."`
	Width   int      `default:"0" hidden:""`
}

// Help says what can be read and ends with examples.
func (mapCmd) Help() string {
	return "Reads: nvidia-smi (topo -m, topo -p2p, -L, -q -x, --query-gpu, nvlink), rocm-smi --showtopo, NCCL and RCCL topology XML, lstopo XML, " +
		"ibnetdiscover, iblinkinfo, ibstat, ibstatus, ibv_devinfo, perfquery, ibqueryerrors, ethtool, Slurm topology.conf and .yaml, scontrol show topology, " +
		"Kubernetes nodes, topograph models, p2pBandwidthLatencyTest, nvbandwidth, nccl-tests, NCCL logs, and busbar's own cluster files. " +
		"The format is recognised by content; several sources join into one cluster.\n\n" +
		"Examples:\n" +
		"  busbar map\n" +
		"  busbar map dgx-h100:16 --audit\n" +
		"  busbar map docs/examples/topo.txt:2 -o node.svg\n" +
		"  busbar map gpu001=docs/examples/topo.txt docs/examples/two-types.yaml -o cluster.yaml\n" +
		"  busbar map cluster.yaml --path gpu001/gpu0,big1/gpu3\n" +
		"  nvidia-smi topo -m | busbar map -"
}

// outputs maps a format's name to its writer.
var outputs = map[string]func(*mapCmd, *env, io.Writer, *cluster.Cluster) error{
	"text":     (*mapCmd).text,
	"yaml":     func(_ *mapCmd, _ *env, w io.Writer, c *cluster.Cluster) error { return clusterfile.Write(w, c) },
	"json":     func(_ *mapCmd, _ *env, w io.Writer, c *cluster.Cluster) error { return writeJSON(w, c) },
	"matrix":   func(_ *mapCmd, _ *env, w io.Writer, c *cluster.Cluster) error { return report.Matrix(w, c) },
	"svg":      func(_ *mapCmd, _ *env, w io.Writer, c *cluster.Cluster) error { return report.SVG(w, c) },
	"dot":      func(_ *mapCmd, _ *env, w io.Writer, c *cluster.Cluster) error { return report.DOT(w, c) },
	"nccl-xml": (*mapCmd).ncclXML,
	"slurm": func(_ *mapCmd, _ *env, w io.Writer, c *cluster.Cluster) error {
		return slurm.WriteConf(w, c, slurm.Auto)
	},
	"slurm-yaml": func(_ *mapCmd, _ *env, w io.Writer, c *cluster.Cluster) error {
		return slurm.WriteYAML(w, c)
	},
	"kube": func(_ *mapCmd, _ *env, w io.Writer, c *cluster.Cluster) error { return k8s.WriteLabels(w, c) },
}

// endings maps the ending of a file name to a format.
var endings = map[string]string{
	".yaml": "yaml", ".yml": "yaml", ".json": "json", ".svg": "svg", ".dot": "dot", ".gv": "dot", ".xml": "nccl-xml", ".conf": "slurm", ".txt": "text",
}

// Run reads the sources, joins them and writes what was asked for.
func (c *mapCmd) Run(e *env) error {
	format, file, err := c.target()
	if err != nil {
		return err
	}
	cl, err := e.load(c.Sources, c.common)
	if err != nil {
		return err
	}
	wrong := false
	write := func(w io.Writer) (err error) {
		switch {
		case c.Audit:
			wrong, err = c.findings(e, w, cl, format)
		case len(c.Path) > 0:
			wrong, err = c.paths(w, cl, format == "json")
		default:
			err = outputs[format](c, e, w, cl)
		}
		return err
	}
	if format != "text" && format != "json" && !c.Quiet {
		for _, w := range cl.Warnings {
			fmt.Fprintln(e.stderr, "note:", w)
		}
	}
	err = e.writeOut(file, write)
	if err == nil && wrong {
		return errWrong
	}
	return err
}

// target says in which format to write and to which file, empty for standard
// output, and refuses flags that contradict each other.
func (c *mapCmd) target() (format, file string, err error) {
	format = c.Output
	if f, name, ok := strings.Cut(format, "="); ok && outputs[f] != nil {
		format, file = f, name
	}
	if format == "-" {
		format = "text"
	}
	if outputs[format] == nil {
		if f := endings[strings.ToLower(filepath.Ext(c.Output))]; f != "" {
			format, file = f, c.Output
		}
	}
	switch {
	case outputs[format] == nil:
		return "", "", fmt.Errorf("-o %s: expected text, yaml, json, matrix, svg, dot, nccl-xml, slurm, slurm-yaml or kube (FORMAT=FILE writes to a file), or a file name that ends in .yaml, .json, .svg, .dot, .xml, .conf or .txt", c.Output)
	case c.JSON && format == "text" && file == "":
		format = "json"
	case c.JSON && format != "json":
		return "", "", fmt.Errorf("--json and -o %s are two formats; give one (-o json=FILE writes JSON to a file)", c.Output)
	}
	plain := format == "text" || format == "json"
	switch {
	case c.Audit && len(c.Path) > 0:
		return "", "", errors.New("--audit and --path are two questions; ask one at a time")
	case c.Audit && !plain:
		return "", "", fmt.Errorf("--audit prints findings, as text or with --json; -o %s is for the map: run it without --audit", c.Output)
	case len(c.Path) > 0 && !plain:
		return "", "", fmt.Errorf("--path prints paths, as text or with --json; -o %s is for the map: run it without --path", c.Output)
	}
	return format, file, nil
}

// findings prints what the audit found; wrong when there is more than notes.
func (c *mapCmd) findings(e *env, w io.Writer, cl *cluster.Cluster, format string) (wrong bool, err error) {
	found := audit.Run(cl)
	if format == "json" {
		err = writeIndented(w, map[string]any{"summary": cl.Summary(), "audit": orEmpty(found), "warnings": orEmpty(cl.Warnings)})
	} else {
		err = report.Findings(w, found, e.text(w))
	}
	return audit.Serious(found), err
}

func (c *mapCmd) text(e *env, w io.Writer, cl *cluster.Cluster) error {
	o := e.text(w)
	if err := report.Text(w, cl, o); err != nil {
		return err
	}
	findings := audit.Run(cl)
	if len(findings) == 0 {
		return nil
	}
	fmt.Fprintln(w)
	return report.Findings(w, findings, o)
}

// ncclXML writes the file for NCCL_TOPO_FILE: one node.
func (c *mapCmd) ncclXML(e *env, w io.Writer, cl *cluster.Cluster) error {
	var with []*cluster.NodeType
	for _, t := range cl.Types {
		if t.Count(cluster.GPU) > 0 {
			with = append(with, t)
		}
	}
	switch len(with) {
	case 0:
		return fmt.Errorf("-o nccl-xml: no node has a GPU")
	case 1:
		return c.ncclNode(e, w, with[0])
	}
	var names []string
	for _, t := range with {
		names = append(names, t.Name)
	}
	return fmt.Errorf("-o nccl-xml: the file describes one node and this cluster has %d kinds (%s); map one of them", len(with), strings.Join(names, ", "))
}

// ncclNode writes one kind of node and says what to know before use.
func (c *mapCmd) ncclNode(e *env, w io.Writer, t *cluster.NodeType) error {
	var form ncclxml.Form
	if t.Trays > 1 {
		form.Tray = t.Devices[t.Of(cluster.GPU)[0]].Tray + 1
	}
	if err := form.Write(w, t); err != nil || c.Quiet {
		return err
	}
	if t.Trays > 1 {
		fmt.Fprintf(e.stderr, "note: %s spans %d hosts and NCCL reads one host per file: this is tray %d\n", t.Name, t.Trays, form.Tray)
	}
	if domain := form.MadeUp(t); domain != "" {
		fmt.Fprintf(e.stderr, "note: bus ids %s:… are made up: NCCL matches GPUs by bus id; replace them with the machine's own\n", domain)
	}
	return nil
}

// mapJSON is the document that busbar map --json prints.
type mapJSON struct {
	*cluster.Document
	Summary cluster.Summary `json:"summary"`
	Audit   []audit.Finding `json:"audit"`
}

func mapOf(c *cluster.Cluster) mapJSON {
	return mapJSON{c.Document(), c.Summary(), orEmpty(audit.Run(c))}
}

func writeJSON(w io.Writer, c *cluster.Cluster) error { return writeIndented(w, mapOf(c)) }

// orEmpty makes an empty list print as [] rather than null.
func orEmpty[T any](s []T) []T {
	if s == nil {
		return []T{}
	}
	return s
}

func writeIndented(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	return enc.Encode(v)
}
