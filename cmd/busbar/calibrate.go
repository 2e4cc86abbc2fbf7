package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"busbar.dev/calibrate"
	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/input/clusterfile"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/query"
	"busbar.dev/result"
)

type calibrateCmd struct {
	common
	Files   []string `arg:"" name:"measured" help:"Outputs of nccl-tests, results that bench gpu kept, or measured points as JSON lines; - for standard input."`
	Cluster string   `short:"c" placeholder:"CLUSTER" help:"The cluster that was measured: a preset, a cluster file, or any file that map reads."`
	Layout  string   `short:"l" placeholder:"NxG" help:"Nodes and GPUs of each that took part, where the output does not list its ranks."`
	Op      string   `help:"The collective, where the output does not say: all_reduce, all_gather, …"`
	NCCL    string   `name:"nccl" placeholder:"VERSION" help:"The release that ran, where the output does not say."`
	Output  string   `short:"o" placeholder:"FILE" help:"Write the cluster with its calibration to FILE, for later -c FILE; - is standard output."`
	Figures bool     `help:"For developers: fit all figures to published points and print them as Go (--json: as a document)."`
	Cross   bool     `help:"Predict every machine of a file by figures fitted on the others, the honest error of the model; about half a minute. With --figures print the margins as Go (--json: as a document)."`

	taken []taken // what the measurements are about
}

// Help says what is fitted and ends with examples.
func (calibrateCmd) Help() string {
	return "Fits the figures that a spec sheet cannot give (share of a link's rate that data gets, latency of a hop, launch, cost of a slice, rates through host memory) to measurements on a cluster, " +
		"keeps those that the measurements pin down, and writes them into the cluster file with their range and source. A later prediction uses them and says so. " +
		"The error on sizes that were left out of the fit is printed beside the error of the fit.\n\n" +
		"Examples:\n" +
		"  busbar calibrate -c dgx-h100:2 --nccl 2.28 docs/examples/two-nodes.log -o site.yaml\n" +
		"  busbar predict -c site.yaml --op all_gather\n" +
		"  busbar calibrate --cross docs/examples/points.jsonl"
}

// Run fits a cluster's figures, or all.
func (c *calibrateCmd) Run(e *env) error {
	if c.Figures || c.Cross {
		if c.Cluster != "" {
			return fmt.Errorf("-c with --figures or --cross: those describe every machine by its own words; leave -c out")
		}
		return c.developer(e)
	}
	if c.Cluster == "" {
		return fmt.Errorf("which cluster was measured? expected -c CLUSTER, a preset or a file")
	}
	if err := c.outputName(); err != nil {
		return err
	}
	cases, cl, err := c.cases(e)
	if err != nil {
		return err
	}
	if contradicted(e, cases) {
		return errWrong
	}
	start, err := predict.Figures(cl)
	if err != nil {
		return err
	}
	site, err := calibrate.Cluster(cases, start)
	if err != nil {
		return err
	}
	names := make([]string, len(c.Files))
	for i, f := range c.Files {
		names[i] = filepath.Base(f)
	}
	cl.Calibration = site.Calibration(cl.Calibration, strings.Join(names, ", "))
	better := site.Better()
	if c.Output != "" && better {
		if err := e.writeFile(c.Output, func(w io.Writer) error { return clusterfile.Write(w, cl) }); err != nil {
			return err
		}
	}
	if err := c.tell(e, site, cl); err != nil {
		return err
	}
	if len(site.Ends) > 0 || !better {
		return errWrong
	}
	return nil
}

// tell says what was found: on standard error where the cluster has standard output.
func (c *calibrateCmd) tell(e *env, site *calibrate.Site, cl *cluster.Cluster) error {
	if c.JSON {
		return writeIndented(e.stdout, siteDocument(site, cl.Calibration, c.taken))
	}
	w := e.stdout
	if isStdout(c.Output) {
		if w = e.stderr; c.Quiet {
			return nil
		}
	}
	fmt.Fprintf(w, "%s\n\n", takenLine(c.taken))
	return printSite(w, site, c.Output)
}

// outputName refuses names that a cluster file cannot have, before the work.
func (c *calibrateCmd) outputName() error {
	if isStdout(c.Output) {
		if c.JSON {
			return fmt.Errorf("-o %s and --json both want standard output; take one of them", c.Output)
		}
		return nil
	}
	switch ext := strings.ToLower(filepath.Ext(c.Output)); ext {
	case "", ".yaml", ".yml":
		return nil
	default:
		return fmt.Errorf("-o %s: a cluster file is YAML; expected a name that ends in .yaml", c.Output)
	}
}

// cases reads what was measured and puts it on the cluster.
func (c *calibrateCmd) cases(e *env) ([]*truth.Case, *cluster.Cluster, error) {
	release := nccl.Newest
	if c.NCCL != "" {
		var err error
		if release, err = nccl.ParseVersion(c.NCCL); err != nil {
			return nil, nil, fmt.Errorf("--nccl: %w", err)
		}
	}
	if c.Op != "" {
		if _, err := coll.ParseKind(c.Op); err != nil {
			return nil, nil, fmt.Errorf("--op: %w", err)
		}
	}
	var sweeps result.Sweeps
	for _, name := range c.Files {
		list, err := c.sweeps(e, name)
		if err != nil {
			return nil, nil, err
		}
		sweeps = append(sweeps, list...)
	}
	if len(sweeps) == 0 {
		return nil, nil, fmt.Errorf("%s: no measured collective to calibrate with", strings.Join(c.Files, ", "))
	}
	need := 0
	for _, s := range sweeps {
		need = max(need, s.Nodes)
	}
	cl, err := e.clusterFor(c.Cluster, need, c.common)
	if err != nil {
		return nil, nil, err
	}
	var cases []*truth.Case
	for _, s := range sweeps {
		x, err := truth.On(s, cl, release)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", s.ID, err)
		}
		cases = append(cases, x)
	}
	c.taken = c.takenAs(sweeps, release)
	return cases, cl, nil
}

// clusterFor loads a cluster of at least so many nodes; a preset without a count
// gets as many.
func (e *env) clusterFor(word string, nodes int, o common) (*cluster.Cluster, error) {
	cl, err := query.LoadAtLeast(e.ctx, e.query(o), word, nodes)
	if err != nil || nodes <= len(cl.Hosts) {
		return cl, err
	}
	return nil, fmt.Errorf("%s has %d nodes; %d were measured", word, len(cl.Hosts), nodes)
}
