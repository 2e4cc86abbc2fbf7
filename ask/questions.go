package ask

import (
	"context"
	"io"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/doctor"
	"busbar.dev/input/clusterfile"
	"busbar.dev/input/k8s"
	"busbar.dev/input/slurm"
	"busbar.dev/launch"
	"busbar.dev/query"
	"busbar.dev/report"
)

const (
	shortly = 10 * time.Second
	longer  = 60 * time.Second
)

// Map, Audit and Path share an address of the page: which is meant shows in what is said.
var (
	Map = &Question{
		Name: "map", Route: "map", Within: shortly, Here: true, Typed: typed[query.Map](report.Map), Forms: []Form{
			drawn(report.MapPicture),
			ofCluster("yaml", ".yaml .yml", clusterfile.Write),
			ofCluster("matrix", "", report.Matrix),
			{"nccl-xml", []string{".xml"}, Text, func(_ context.Context, w io.Writer, a Answer) error {
				cl, err := a.Document.(*query.MapDoc).Cluster()
				if err != nil {
					return err
				}
				notes, err := report.NCCLTopology(w, cl)
				for _, text := range notes {
					if a.Env.Note != nil {
						a.Env.Note(text)
					}
				}
				return err
			}},
			ofCluster("slurm", ".conf", slurm.WriteConf),
			ofCluster("slurm-yaml", "", slurm.WriteYAML),
			ofCluster("kube", "", k8s.WriteLabels),
			ofCluster("kueue", "", k8s.WriteTopology),
		},
	}
	Audit = &Question{
		Name: "map --audit", Route: "map", Within: shortly, Here: true, Typed: typed[query.Audit](report.Audit),
	}
	Floors = &Question{Name: "map --floors", Route: "floors", Within: longer, Typed: typed[query.Floors](report.Floors)}
	Path   = &Question{Name: "map", Route: "map", Within: shortly, Here: true, Typed: typed[query.Path](report.Paths)}
)

// ofCluster is a form of a map that is made from its cluster.
func ofCluster(name, endings string, write func(io.Writer, *cluster.Cluster) error) Form {
	return written(name, endings, Text, func(w io.Writer, d *query.MapDoc) error {
		cl, err := d.Cluster()
		if err != nil {
			return err
		}
		return write(w, cl)
	})
}

// played is a form of a step that needs its timeline, which is played only for it.
func played(f Form) Form {
	write := f.Write
	f.Write = func(ctx context.Context, w io.Writer, a Answer) (err error) {
		q := *a.Question.(*query.Step)
		q.Drawn, a.Env.Note = true, nil // what is noted was said already
		if a.Document, err = q.Run(ctx, a.Env); err != nil {
			return err
		}
		return write(ctx, w, a)
	}
	return f
}

// markdown is the form of a report of the doctor for tickets.
func markdown[D any](of func(*D) *doctor.Report) Form {
	return written("markdown", ".md", "", func(w io.Writer, d *D) error { return doctor.Markdown(w, of(d)) })
}

// floors are the forms in which other programs' checks are told what a collective reaches at least.
func floors() (list []Form) {
	for _, name := range report.FloorForms() {
		list = append(list, Form{name, nil, Text, func(_ context.Context, w io.Writer, a Answer) error {
			return report.FloorForm(w, a.Document.(*query.PredictDoc), a.Question.(*query.Predict), name)
		}})
	}
	return list
}

// requests are the forms in which schedulers and clouds are told the nodes of a placement.
func requests() []Form {
	var list []Form
	for _, name := range launch.RequestForms() {
		list = append(list, written(name, "", "", func(w io.Writer, d *query.PlaceDoc) error {
			return d.Request().Write(w, name)
		}))
	}
	return list
}

// Questions are all but Audit and Path.
var Questions = []*Question{
	Map, Floors,
	{
		Name: "predict", Route: "predict", Within: shortly, Here: true, Also: true,
		Typed: typed[query.Predict](report.Predict), Forms: append(floors(), drawn(report.Curves)),
	},
	{
		Name: "experts", Command: "predict --op moe_dispatch", Route: "experts", Within: shortly, Here: true,
		Typed: typed[query.Experts](report.Experts),
	},
	{
		Name: "sched", Command: "predict --rounds", Route: "rounds", Within: shortly, Here: true,
		Typed: typed[query.Sched](report.Sched),
	},
	{
		Name: "step", Route: "step", Within: longer, Also: true, Forms: []Form{
			played(drawn(report.StepTimeline)), played(written("trace", ".trace.json", JSON, report.StepTrace)),
		},
		Typed: typed[query.Step](report.Step),
	},
	{
		Name: "envelope", Command: "step --formulas", Route: "envelope", Within: shortly,
		Typed: typed[query.Envelope](report.Envelope),
	},
	{
		Name: "need", Route: "need", Within: longer, Typed: typed[query.Need](report.Need),
		Group: "Predict", Help: "Find the slowest network that is enough for a job.", About: `
The inverse of step: the slowest network between nodes, and the fewest NICs, for which the job stays within 5% of
what it would take if nothing waited for other nodes; and which layer of the fabric to upgrade first, with the gain
of each. The step is priced on variants of the cluster. Exits with 1 when no network that is sold is enough.

Examples:
  busbar need -c dgx-h100:4 -m llama2-7b --parallel zero=3
  busbar need -c dgx-a100:16 -m gpt3-13b --parallel tp=4 --micro-batch 2 --within 10
  busbar need -c baskerville -m gpt2-large -l 4x4 --micro-batch 8 --json
`,
	},
	{
		Name: "scale", Command: "step", Route: "scale", Within: longer, Also: true, Forms: []Form{drawn(report.ScaleCurve)},
		Typed: beginning(query.Scale{Nodes: "all"}, report.Scale),
	},
	{Name: "goodput", Route: "goodput", Within: longer, Typed: typed[query.Goodput](report.Goodput)},
	{Name: "plan", Route: "plan", Within: longer, Heavy: true, Typed: typed[query.Plan](report.Plan)},
	{
		Name: "place", Route: "place", Within: longer, Heavy: true, Also: true, Forms: requests(),
		Typed: typed[query.Place](report.Place),
	},
	listing("presets", report.Presets),
	listing("models", report.Models),
	listing("hardware", report.Hardware),
	listing("frameworks", report.Named),
	listing("causes", report.Named),
	listing("algorithms", report.Algorithms),
	{
		Name: "version", Route: "version", Within: shortly, Typed: typed[query.Release](report.Release),
		Help: "Print the version.",
	},
	{
		Name: "doctor", Route: "doctor", Within: longer, Heavy: true, Typed: typed[query.Doctor](report.Doctor),
		Forms: []Form{markdown(func(d *query.DoctorDoc) *doctor.Report { return d.Report })},
	},
	{Name: "hang", Route: "hang", Within: longer, Heavy: true, Typed: typed[query.Hang](report.Hang)},
	{
		Name: "explain", Command: "doctor --explain", Route: "explain", Within: longer, Heavy: true, Also: true,
		Typed: typed[query.Explain](func(p *report.Page, d *query.ExplainDoc) { report.Traffic(p, d.Run, d.Size) }),
	},
	{
		Name: "measured", Command: "doctor", Route: "measured", Within: shortly,
		Typed: typed[query.DoctorBench](report.DoctorBench),
		Forms: []Form{
			markdown(func(d *query.DoctorBenchDoc) *doctor.Report { return d.Report }), drawn(report.MeasuredCurve),
		},
	},
	{Name: "jobs", Typed: typed[query.Jobs](report.Jobs)},
	{Name: "trace", Command: "doctor", Typed: typed[query.Trace](report.Traced)},
	{Name: "diff", Typed: typed[query.Diff](report.Diff)},
	{
		Name: "self-test", Typed: typed[query.SelfTest](report.SelfTest),
		Help: "Check that this program works on this machine.",
	},
}

// listing is a question for what is known by name.
func listing(what string, text func(*report.Page, *query.ListDoc)) *Question {
	return &Question{
		Name: what, Command: "list " + what, Route: what, Within: shortly, Typed: beginning(query.List{What: what}, text),
	}
}
