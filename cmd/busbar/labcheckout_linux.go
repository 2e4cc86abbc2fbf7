package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"busbar.dev/internal/texttab"
	"busbar.dev/lab"
)

// labVerdict is how good the predictions were, beside how good they have to be.
type labVerdict struct {
	Score     lab.Score `json:"score"`
	MaxMedian float64   `json:"max_median"`
	MaxWorst  float64   `json:"max_worst"`
	MaxNoise  float64   `json:"max_noise"`
}

// print says it of points or steps; order is what of them was compared.
func (v *labVerdict) print(w io.Writer, what, order string) {
	s := &v.Score
	fmt.Fprintf(w, "\n%d %s: median error %.1f%% (at most %.0f%%), worst %.1f%% (at most %.0f%%): %s\n", s.Points, what, s.Median*100, v.MaxMedian*100, s.Worst*100, v.MaxWorst*100, s.Where)
	if s.Noisy > 0 {
		fmt.Fprintf(w, "* %d more do not count: their runs differ by more than %.0f%%, the machine is busy\n", s.Noisy, v.MaxNoise*100)
	}
	fmt.Fprintf(w, "%s: %d of %d pairs that differ by more than 15%% right\n", order, s.Pairs-len(s.Wrong), s.Pairs)
	for _, x := range s.Wrong {
		fmt.Fprintln(w, "wrong:", x)
	}
}

// labCheckDoc is the document of lab check --json.
type labCheckDoc struct {
	labVerdict
	Pairs   labPairs    `json:"calibration"`
	Points  []lab.Point `json:"points"`
	Skipped []string    `json:"skipped"`
}

// printLabCheck prints measured beside predicted.
func printLabCheck(e *env, d *labCheckDoc) {
	right := texttab.Right
	named := false
	for i := range d.Points {
		named = named || d.Points[i].Scenario != ""
	}
	t := texttab.Table{}
	if named {
		t.Columns = append(t.Columns, texttab.Column{Head: "scenario"})
	}
	t.Columns = append(t.Columns, []texttab.Column{
		{Head: "layout"}, {Head: "algorithm"}, {Head: "size", Align: right}, {Head: "measured", Align: right}, {Head: "predicted", Align: right}, {Head: "error", Align: right}, {Head: "noise", Align: right}, {Head: "limited by"},
	}...)
	for _, p := range d.Points {
		row := []string{p.Layout, p.Algo, p.Size.String(), p.Measured.String(), p.Predicted.String(), fmt.Sprintf("%+.1f%%", p.Error*100) + mark(&p), fmt.Sprintf("%.0f%%", p.Noise*100), p.Limit}
		if named {
			row = append([]string{p.Scenario}, row...)
		}
		t.Row(row...)
	}
	t.Write(e.stdout)
	d.print(e.stdout, "points", "order of algorithms")
	for _, w := range d.Skipped {
		fmt.Fprintln(e.stdout, "left out:", w)
	}
}

// mark tells points that do not count.
func mark(p *lab.Point) string {
	if p.TooNoisy {
		return "*"
	}
	return ""
}

// labPoint is a sweep in the form that busbar validate reads.
type labPoint struct {
	ID         string    `json:"id"`
	Source     string    `json:"source"`
	Collective string    `json:"collective"`
	Dtype      string    `json:"dtype"`
	Nodes      int       `json:"nodes"`
	PerNode    int       `json:"gpus_per_node"`
	Ranks      int       `json:"n_ranks"`
	NICs       int       `json:"nics_per_node"`
	Gbps       float64   `json:"nic_gbps"`
	Fabric     string    `json:"fabric"`
	Algo       string    `json:"algo"`
	Tool       string    `json:"tool"`
	Sizes      []int64   `json:"sizes_bytes"`
	Time       []float64 `json:"time_us"`
	Predicted  []float64 `json:"predicted_us"`
	Class      string    `json:"hw_class"`
	Grade      string    `json:"grade"`
	Notes      string    `json:"notes"`
}

// write writes the points, a sweep a line.
func (c *labCheckCmd) write(e *env, list []scenario, points []lab.Point) error {
	var sweeps []*labPoint
	at := map[string]*labPoint{}
	for _, p := range points {
		if p.TooNoisy {
			continue
		}
		id := strings.Join([]string{"lab", strings.ReplaceAll(p.Scenario, " ", "_"), p.Layout, p.Algo}, "-")
		s := at[id]
		if s == nil {
			var nodes, each int
			fmt.Sscanf(p.Layout, "%dx%d", &nodes, &each)
			s = &labPoint{
				ID: id, Source: "busbar lab check", Collective: p.Op, Dtype: "float32", Nodes: nodes, PerNode: each, Ranks: nodes * each, Fabric: "plain TCP",
				Algo: p.Algo, Tool: "busbar lab check", Class: "lab " + p.Scenario, Grade: "A", Notes: "measured in a lab on one machine; predicted by the sockets model",
			}
			for _, x := range list {
				if x.name == p.Scenario {
					if plan, err := lab.New(x.cluster, x.options); err == nil && len(plan.NICs) > 0 {
						s.NICs, s.Gbps = len(plan.Nodes[0].NICs), plan.NICs[0].Rate.Gbps()
					}
				}
			}
			at[id] = s
			sweeps = append(sweeps, s)
		}
		s.Sizes, s.Time, s.Predicted = append(s.Sizes, int64(p.Size)), append(s.Time, p.Measured.Micros()), append(s.Predicted, p.Predicted.Micros())
	}
	return e.writeFile(c.Points, func(w io.Writer) error {
		enc := json.NewEncoder(w)
		for _, s := range sweeps {
			if err := enc.Encode(s); err != nil {
				return err
			}
		}
		return nil
	})
}
