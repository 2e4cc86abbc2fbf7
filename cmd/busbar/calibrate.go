package main

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"busbar/calibrate"
	"busbar/cluster"
	"busbar/input/clusterfile"
	"busbar/input/nccltests"
	"busbar/nccl"
	"busbar/predict"
	"busbar/truth"
)

type calibrateCmd struct {
	common
	Files   []string `arg:"" name:"measured" help:"Outputs of nccl-tests, or measured points as JSON lines; - for standard input."`
	Cluster string   `short:"c" placeholder:"CLUSTER" help:"The cluster that was measured: a preset, a cluster file, or any file that map reads."`
	Layout  string   `short:"l" placeholder:"NxG" help:"Nodes and GPUs of each that took part, where the output does not list its ranks."`
	Op      string   `help:"The collective, where the output does not say: all_reduce, all_gather, …"`
	NCCL    string   `name:"nccl" placeholder:"VERSION" help:"The release that ran, where the output does not say."`
	Output  string   `short:"o" placeholder:"FILE" help:"Write the cluster with its calibration to FILE, for later -c FILE."`
	Figures bool     `help:"For developers: fit all figures to published points and print them as Go."`
	Cross   bool     `help:"For developers: predict every machine by figures fitted on the others; with --figures also print the margins as Go."`
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
	if c.Output != "" {
		if err := e.writeFile(c.Output, func(w io.Writer) error { return clusterfile.Write(w, cl) }); err != nil {
			return err
		}
	}
	if c.JSON {
		err = writeIndented(e.stdout, siteDocument(site, cl.Calibration))
	} else {
		err = printSite(e.stdout, site, c.Output)
	}
	if err == nil && len(site.Ends) > 0 {
		return errWrong
	}
	return err
}

// outputName refuses names that a cluster file cannot have, before the work.
func (c *calibrateCmd) outputName() error {
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
	var groups []truth.Group
	for _, name := range c.Files {
		list, err := c.sweeps(e, name, release)
		if err != nil {
			return nil, nil, err
		}
		groups = append(groups, list...)
	}
	if len(groups) == 0 {
		return nil, nil, fmt.Errorf("%s: no measured collective to calibrate with", strings.Join(c.Files, ", "))
	}
	need := 0
	for i := range groups {
		need = max(need, groups[i].Nodes)
	}
	cl, err := e.clusterFor(c.Cluster, need, c.common)
	if err != nil {
		return nil, nil, err
	}
	var cases []*truth.Case
	for i := range groups {
		x, err := groups[i].On(cl, release)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", groups[i].ID, err)
		}
		cases = append(cases, x)
	}
	return cases, cl, nil
}

// clusterFor loads a cluster of at least so many nodes; a preset without a count
// gets as many.
func (e *env) clusterFor(word string, nodes int, o common) (*cluster.Cluster, error) {
	cl, err := e.load([]string{word}, o)
	if err != nil || nodes <= len(cl.Hosts) {
		return cl, err
	}
	if _, count, err := cutCount(word); err == nil && count == 0 && (len(cl.Hosts) == 1 || !exists(word)) {
		return e.load([]string{fmt.Sprintf("%s:%d", word, nodes)}, o)
	}
	return nil, fmt.Errorf("%s has %d nodes; %d were measured", word, len(cl.Hosts), nodes)
}

// maxMeasured bounds one file of measurements.
const maxMeasured = 256 << 20

// sweeps reads one file, of either kind.
func (c *calibrateCmd) sweeps(e *env, name string, release nccl.Version) ([]truth.Group, error) {
	data, err := e.readWhole(name)
	if err != nil {
		return nil, err
	}
	if nccltests.Match(data) {
		return c.tables(name, data, release)
	}
	groups, left, err := truth.Read(name, bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("%w (and it is no output of nccl-tests)", err)
	}
	if len(groups) == 0 && len(left) > 0 {
		return nil, fmt.Errorf("%s: %s", left[0].ID, left[0].Reason)
	}
	return slices.DeleteFunc(groups, func(g truth.Group) bool {
		if g.Anomalous && !c.Quiet {
			fmt.Fprintf(e.stderr, "note: %s is anomalous, slow because something was wrong; not fitted\n", g.ID)
		}
		return g.Anomalous
	}), nil
}

func (e *env) readWhole(name string) ([]byte, error) {
	in := e.stdin
	if name != "-" {
		f, err := os.Open(name)
		switch {
		case os.IsNotExist(err):
			return nil, fmt.Errorf("%s: no such file; expected what nccl-tests printed, or measured points as JSON lines", name)
		case err != nil:
			return nil, cannotError{err}
		}
		defer f.Close()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, maxMeasured+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxMeasured {
		return nil, fmt.Errorf("%s: more than %d MiB of measurements", name, maxMeasured>>20)
	}
	return data, nil
}

// tables turns nccl-tests' tables into sweeps.
func (c *calibrateCmd) tables(name string, data []byte, release nccl.Version) ([]truth.Group, error) {
	res, err := nccltests.ReadResult(name, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	var list []truth.Group
	for i := range res.Tables {
		t := &res.Tables[i]
		if len(t.Rows) == 0 {
			continue
		}
		if t.Op == "" {
			t.Op = c.Op
		}
		if t.Op == "" {
			return nil, fmt.Errorf("%s:%d: nothing says which collective this table is of; give it with --op", name, t.Line)
		}
		nodes, gpus, err := c.shape(t)
		if err != nil {
			return nil, fmt.Errorf("%s:%d: %w", name, t.Line, err)
		}
		var sizes, times []float64
		for _, r := range t.Rows {
			if h := r.OutOfPlace; h != nil && h.Time > 0 && r.Size > 0 {
				sizes, times = append(sizes, float64(r.Size)), append(times, float64(h.Time)/1e6)
			}
		}
		g, err := truth.Sweep(fmt.Sprintf("%s:%d", filepath.Base(name), t.Line), t.Op, t.Rows[0].Type, nodes, gpus, sizes, times)
		if err != nil {
			return nil, err
		}
		if c.NCCL == "" {
			g.NCCL = libraryVersion(t.Library)
		}
		list = append(list, *g)
	}
	return list, nil
}

// shape is how many nodes with how many GPUs each a table is about.
func (c *calibrateCmd) shape(t *nccltests.Table) (nodes, gpus int, err error) {
	if c.Layout != "" {
		return predict.ParseLayout(c.Layout)
	}
	hosts := map[string]int{}
	for _, r := range t.Ranks {
		hosts[r.Host]++
	}
	for _, n := range hosts {
		gpus = max(gpus, n)
	}
	if len(hosts) == 0 || gpus*len(hosts) != t.NRanks() {
		return 0, 0, fmt.Errorf("the output lists no ranks, or not all; say which took part with -l, e.g. -l 2x8")
	}
	return len(hosts), gpus, nil
}

// libraryVersion turns NCCL's code 22907 into 2.29.7; "" where there is none.
func libraryVersion(code string) string {
	n, err := strconv.Atoi(strings.TrimSpace(code))
	if err != nil || n < 20900 || n > math.MaxInt32 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100)
}
