package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/failure"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/report"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// forecast is a report's forecast and those who made it.
type forecast struct {
	*report.Forecast
	asked []*predict.Predictor
	query predict.Query
	links []result.Links // of the one row, where they were asked for
}

// arranged puts rows into the order in which they are shown: by size, in a
// comparison the fastest first.
func arranged(f *report.Forecast) []report.ForecastRow {
	var rows []report.ForecastRow
	for _, s := range f.Sides {
		for _, r := range s.Rows {
			rows = append(rows, report.ForecastRow{Layout: s.Layout, Row: r})
		}
	}
	slices.SortStableFunc(rows, func(a, b report.ForecastRow) int {
		n := cmp.Compare(a.Asked, b.Asked)
		if f.Compared {
			n = cmp.Or(n, cmp.Compare(a.Time, b.Time))
		}
		return n
	})
	return rows
}

// write sends the forecast to the files and to standard output.
func (c *predictCmd) write(e *env, f *forecast) error {
	taken := false
	for _, o := range c.Output {
		write, file, err := c.form(e, f, o)
		if err != nil {
			return err
		}
		if err := e.writeFile(file, write); err != nil {
			return err
		}
		taken = taken || isStdout(file)
	}
	if taken {
		return nil
	}
	if c.JSON {
		return writeIndented(e.stdout, f.document(c.Plan))
	}
	return c.text(e, e.stdout, f)
}

// outputs refuses what could not be written, and two things on standard output.
func (c *predictCmd) outputs(e *env) error {
	if c.Trace != "" {
		c.Output = append(c.Output, "trace="+c.Trace)
	}
	taken := ""
	if c.JSON {
		taken = "--json"
	}
	for _, o := range c.Output {
		_, file, err := c.form(e, nil, o)
		if err != nil {
			return err
		}
		if !isStdout(file) {
			continue
		}
		if taken != "" {
			return fmt.Errorf("%s and -o %s both want standard output; take one of them", taken, o)
		}
		taken = "-o " + o
	}
	return nil
}

// form is the writer for a file, by FORMAT=FILE or by the end of its name.
func (c *predictCmd) form(e *env, f *forecast, output string) (func(io.Writer) error, string, error) {
	forms := map[string]func(io.Writer) error{
		"svg":   func(w io.Writer) error { return report.Curves(w, f.Forecast) },
		"trace": func(w io.Writer) error { return c.trace(e, w, f) },
		"json":  func(w io.Writer) error { return writeIndented(w, f.document(c.Plan)) },
		"text":  func(w io.Writer) error { return c.text(e, w, f) },
	}
	if form, name, ok := strings.Cut(output, "="); ok && forms[form] != nil {
		return forms[form], name, nil
	}
	if isStdout(output) {
		return nil, "", fmt.Errorf("-o %s: in which form? text=-, json=-, svg=- or trace=-", output)
	}
	lower := strings.ToLower(output)
	for _, x := range []struct{ end, form string }{{".trace.json", "trace"}, {".json", "json"}, {".svg", "svg"}, {".txt", "text"}} {
		if strings.HasSuffix(lower, x.end) {
			return forms[x.form], output, nil
		}
	}
	return nil, "", fmt.Errorf("-o %s: expected a file name that ends in .svg, .trace.json, .json or .txt, or FORMAT=FILE (svg, trace, json, text)", output)
}

func (c *predictCmd) text(e *env, w io.Writer, f *forecast) error {
	if err := report.Predictions(w, f.Forecast, e.text(w)); err != nil {
		return err
	}
	if f.links != nil {
		if err := printLinks(w, f.links); err != nil {
			return err
		}
	}
	if !c.Plan {
		return nil
	}
	for i, p := range f.asked {
		fmt.Fprintf(w, "\nNCCL %v on %s\n", p.Plan.Version, f.Sides[i].Layout)
		if _, err := io.WriteString(w, p.Plan.String()); err != nil {
			return err
		}
	}
	return nil
}

// trace writes the timeline of the one run that was asked for.
func (c *predictCmd) trace(e *env, w io.Writer, f *forecast) error {
	if len(f.Rows) != 1 {
		return fmt.Errorf("a timeline is of one run and there are %d rows; give one --size, one layout and one --algo", len(f.Rows))
	}
	r, p := f.Rows[0], f.asked[0]
	op := ran(r)
	n, err := p.Steps(op, r.Setting)
	switch {
	case err != nil:
		return err
	case n > maxTraced:
		return failure.Cannot(fmt.Errorf("a timeline of %d events is more than a viewer opens (%d); take a smaller --size, fewer nodes (-l) or another --algo", n, maxTraced))
	case n > manyTraced:
		c.note(e, fmt.Sprintf("the timeline will have about %d events; a viewer is slow with more than %d: a smaller --size or fewer nodes make less", n, manyTraced))
	}
	done := e.later(c.common, "playing every message")
	run, err := p.Play(e.ctx, op, r.Setting)
	done()
	if err != nil {
		return failure.Cannot(err)
	}
	run.Op, run.Algo = r.Op, r.Algo
	if run.Time != r.Time {
		c.note(e, fmt.Sprintf("the timeline lasts %v, every message played; the table says %v by the steady form, which the model's figures were fitted with: go by the table for how long it takes", run.Time, r.Time))
	}
	return report.Trace(w, run, r.Time, p.Name)
}

// manyTraced is the number of events above which a viewer needs patience.
const manyTraced = 50_000

// maxTraced is the number of events that a viewer still opens.
const maxTraced = 2_000_000

// predictJSON is the document of busbar predict --json.
type predictJSON struct {
	Cluster  string            `json:"cluster"`
	Op       coll.Kind         `json:"op"`
	NCCL     string            `json:"nccl"`
	Model    string            `json:"model"`
	Rows     []predictRowJSON  `json:"rows"`
	Advice   []predict.Advice  `json:"advice"`
	Gain     float64           `json:"best_gain"` // of the fastest that NCCL can run over what it takes
	Caveats  []string          `json:"caveats,omitempty"`
	Compare  []predict.Verdict `json:"compare,omitempty"`
	Skipped  []string          `json:"skipped,omitempty"`
	NCCLPlan *nccl.Plan        `json:"nccl_plan,omitempty"`
	Plans    []planOf          `json:"nccl_plans,omitempty"` // of several layouts
}

type planOf struct {
	Layout string     `json:"layout"`
	Plan   *nccl.Plan `json:"nccl_plan"`
}

type predictRowJSON struct {
	Layout   string       `json:"layout"`
	Ranks    int          `json:"ranks"`
	Size     unit.Bytes   `json:"size_bytes"`
	Asked    unit.Bytes   `json:"asked_bytes"`
	Count    int64        `json:"count"`
	Dtype    string       `json:"dtype"`
	Algo     string       `json:"algo"`
	Proto    string       `json:"proto"`
	Channels int          `json:"channels"`
	Time     unit.Time    `json:"time_us"`
	Low      unit.Time    `json:"low_us"`
	High     unit.Time    `json:"high_us"`
	AlgBW    unit.Rate    `json:"algbw_GBps"`
	BusBW    unit.Rate    `json:"busbw_GBps"`
	Chosen   bool         `json:"chosen"`
	Beyond   bool         `json:"beyond_nccl,omitempty"`
	Limit    result.Limit `json:"bottleneck"`
	Parts    partsJSON    `json:"parts"`
	Busy     []useJSON    `json:"busy"`
	Links    []linksJSON  `json:"links,omitempty"`
}

type partsJSON struct {
	Launch  unit.Time `json:"launch_us"`
	Latency unit.Time `json:"latency_us"`
	Sync    unit.Time `json:"sync_us"`
	Moving  unit.Time `json:"moving_us"`
}

type useJSON struct {
	Where string           `json:"where"`
	Kind  result.LimitKind `json:"kind"`
	Rate  unit.Rate        `json:"rate_GBps"`
	Bytes unit.Bytes       `json:"bytes"`
	Share float64          `json:"share"`
}

func (f *forecast) document(plan bool) predictJSON {
	d := predictJSON{Cluster: f.Cluster, Op: f.query.Kind, NCCL: f.NCCL, Model: f.Origin, Rows: []predictRowJSON{}, Advice: []predict.Advice{}, Compare: f.Verdicts, Skipped: f.Skipped, Caveats: f.Caveats}
	for _, r := range f.Rows {
		d.Rows = append(d.Rows, rowJSON(r))
	}
	if f.links != nil {
		d.Rows[0].Links = linksDocument(f.links)
	}
	for _, s := range f.Sides {
		d.Advice = append(d.Advice, s.Advice...)
		d.Gain = max(d.Gain, math.Round(s.Gain*1e4)/1e4)
	}
	if !plan {
		return d
	}
	d.NCCLPlan = f.asked[0].Plan
	if len(f.asked) > 1 {
		for i, p := range f.asked {
			d.Plans = append(d.Plans, planOf{f.Sides[i].Layout, p.Plan})
		}
	}
	return d
}

func rowJSON(r report.ForecastRow) predictRowJSON {
	j := predictRowJSON{
		Layout: r.Layout, Ranks: r.Ranks, Size: r.Op.Size(r.Ranks), Asked: r.Asked, Count: r.Op.Count(r.Ranks), Dtype: r.Op.Type.String(),
		Algo: r.Algo, Proto: r.Setting.Proto, Channels: r.Channels, Time: r.Time, Low: report.Low(r.Run), High: report.High(r.Run),
		AlgBW: r.AlgBW(), BusBW: r.BusBW(), Chosen: r.Chosen, Beyond: r.Beyond, Limit: r.Limit,
		Parts: partsJSON{r.Parts.Launch, r.Parts.Latency, r.Parts.Sync, r.Parts.Moving}, Busy: []useJSON{},
	}
	for _, u := range r.Run.Busy {
		j.Busy = append(j.Busy, useJSON{u.Where, u.Kind, u.Rate, u.Bytes, math.Round(u.Share*1e4) / 1e4})
	}
	return j
}
