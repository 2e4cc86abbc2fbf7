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
		},
	}
	Audit = &Question{
		Name: "map --audit", Route: "map", Within: shortly, Here: true, Typed: typed[query.Audit](report.Audit),
	}
	Path = &Question{Name: "map", Route: "map", Within: shortly, Here: true, Typed: typed[query.Path](report.Paths)}
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

// findings are the forms of a report of the doctor that other programs read.
func findings[D any](of func(*D) *doctor.Report) []Form {
	form := func(name, ending string, write func(io.Writer, *doctor.Report) error) Form {
		return written(name, ending, "", func(w io.Writer, d *D) error { return write(w, of(d)) })
	}
	return []Form{
		form("markdown", ".md", doctor.Markdown), form("sarif", ".sarif", doctor.SARIF), form("junit", ".xml", doctor.JUnit),
	}
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
	Map,
	{
		Name: "predict", Route: "predict", Within: shortly, Here: true, Also: true,
		Typed: typed[query.Predict](report.Predict), Forms: []Form{
			drawn(report.Curves),
			{"trace", []string{".trace.json"}, "", func(ctx context.Context, w io.Writer, a Answer) error {
				run, row, name, err := a.Question.(*query.Predict).Timeline(ctx, a.Env)
				if err != nil {
					return err
				}
				return report.Trace(w, run, row.Time, name)
			}},
		},
	},
	{
		Name: "experts", After: "calibrate",
		Help: "Predict the dispatch and combine of a mixture of experts.",
		About: "Predicts how long the tokens of a mixture of experts need to reach the GPUs of their experts " +
			"(dispatch) and to return (combine), exchanged over NVLink or xGMI and RDMA as DeepEP does. All GPUs " +
			"of the layout form one expert-parallel group. A token is sent once to every node that holds one of " +
			"its experts and forwarded there; with --mode low_latency it is sent directly to every expert. Routing " +
			"is assumed to be balanced.",
		Examples: []string{
			"busbar experts -c dgx-h100:4",
			"busbar experts -c dgx-h100:2 --mode low_latency --tokens 16,128",
			"busbar experts -c mi300x-8 --tokens 4096 --json",
		},
		Route: "experts", Within: shortly, Here: true, Typed: typed[query.Experts](report.Experts),
	},
	{
		Name: "step", Route: "step", Within: shortly, Also: true, Forms: []Form{
			played(drawn(report.StepTimeline)), played(written("trace", ".trace.json", JSON, report.StepTrace)),
		},
		Typed: typed[query.Step](report.Step),
	},
	{
		Name: "envelope", After: "step",
		Help: "Estimate a training step with simple formulas, each line with its formula and numbers.",
		About: "Back-of-the-envelope estimates, each line with its formula and numbers: memory, operations, compute, " +
			"gradient exchange inside and across nodes, and whether it is overlapped. busbar step predicts the " +
			"step itself.",
		Examples: []string{
			"busbar envelope -c dgx-a100:4 -m gpt3-2.7b --global-batch 64",
			"busbar envelope -c dgx-h100 -m llama3-8b --gpus 64 --json",
		},
		Route: "envelope", Within: shortly, Typed: typed[query.Envelope](report.Envelope),
	},
	{
		Name: "need", After: "envelope",
		Help: "Find the slowest network and fewest NICs that keep a job compute-bound, and what to upgrade first.",
		About: "The inverse of step: the slowest network between nodes, and the fewest NICs, for which the job stays " +
			"within 5% of what it would take if nothing waited for other nodes; and which layer of the fabric to " +
			"upgrade first, with the gain of each. The step is priced on variants of the cluster. Exits with 1 " +
			"when no network that is sold is enough.",
		Examples: []string{
			"busbar need -c dgx-h100:4 -m llama2-7b --parallel zero=3",
			"busbar need -c dgx-a100:16 -m gpt3-13b --parallel tp=4 --micro-batch 2 --within 10",
			"busbar need -c baskerville -m gpt2-large -l 4x4 --micro-batch 8 --json",
		},
		Route: "need", Within: shortly, Typed: typed[query.Need](report.Need),
	},
	{
		Name: "scale", Route: "scale", Within: shortly, Also: true, Forms: []Form{drawn(report.ScaleCurve)},
		Typed: typed[query.Scale](report.Scale),
	},
	{Name: "goodput", Route: "goodput", Within: shortly, Typed: typed[query.Goodput](report.Goodput)},
	{Name: "plan", Route: "plan", Within: longer, Heavy: true, Typed: typed[query.Plan](report.Plan)},
	{
		Name: "place", Route: "place", Within: longer, Heavy: true, Also: true, Forms: requests(),
		Typed: typed[query.Place](report.Place),
	},
	{
		Name: "presets", After: "order",
		Help:  "List the machines that can be used by name.",
		About: "A preset is a cluster by name, with an optional node count: dgx-h100:16.",
		Examples: []string{
			"busbar presets",
			"busbar map baskerville:2",
		},
		Route: "presets", Within: shortly, Typed: typed[query.Presets](report.Presets),
	},
	{
		Name: "models", After: "presets",
		Help: "List the models that can be used by name, with their tensors.",
		About: "Lists the models that are known by name, with their dimensions and exact numbers of parameters; -v " +
			"adds the sources. With a name, its tensors in the order in which a framework registers them.",
		Examples: []string{
			"busbar models",
			"busbar models gpt2-large",
			"busbar models llama3-8b --json",
		},
		Route: "models", Within: shortly, Typed: typed[query.Models](report.Models),
	},
	{
		Name: "hardware", After: "models",
		Help: "List the hardware catalogue with its sources.",
		About: "-v prints the source below every row; --json has them too. Rates are one direction; the duplex rate " +
			"is printed too, and which of the two the vendor quotes. Peaks are dense.",
		Examples: []string{
			"busbar hardware links",
			"busbar hardware gpu --json",
		},
		Route: "hardware", Within: shortly, Typed: typed[query.Hardware](report.Hardware),
	},
	{Name: "version", Route: "version", Within: shortly, Typed: typed[query.Release](report.Release)},
	{
		Name: "doctor", Route: "doctor", Within: longer, Heavy: true, Typed: typed[query.Doctor](report.Doctor),
		Forms: findings(func(d *query.DoctorDoc) *doctor.Report { return d.Report }),
	},
	{Name: "hang", Route: "hang", Within: longer, Heavy: true, Typed: typed[query.Hang](report.Hang)},
	{
		Name: "doctor explain", Route: "explain", Within: longer, Heavy: true, Also: true,
		Forms: []Form{drawn(func(d *query.ExplainDoc) (*report.Picture, error) { return report.Traffic(d.Run), nil })},
		Typed: typed[query.Explain](func(p *report.Page, d *query.ExplainDoc) { report.TrafficText(p, d.Run, d.Size) }),
	},
	{
		Name: "doctor bench", Route: "measured", Within: shortly, Typed: typed[query.DoctorBench](report.DoctorBench),
		Forms: findings(func(d *query.DoctorBenchDoc) *doctor.Report { return d.Report }),
	},
	{Name: "jobs", Typed: typed[query.Jobs](report.Jobs)},
	{
		Name: "trace", After: "jobs",
		Help: "Say where the time of real steps went, from a profiler's traces, beside the prediction.",
		About: "Reads what a profiler recorded of real steps: traces of PyTorch (torch.profiler, export_chrome_trace) " +
			"and of Nsight Systems (nsys export --type sqlite; nsys stats --report cuda_gpu_trace --format csv). " +
			"Says how much of a step is computing, exposed communication (a collective runs and nothing is " +
			"computed), copies and idle time, and lists the collectives by process group and size with their bus " +
			"bandwidth. The traces of several ranks show which rank is late, and separate waiting from transfer. " +
			"With -c, every collective is compared with its prediction; with -c and -m, the step is too.\n\nExit " +
			"code 1: the step takes longer than the range of its prediction, a rank is late, or a transfer is " +
			"slower than its prediction allows. A sentence names the parts of the step that take longer.",
		Examples: []string{
			"busbar trace docs/examples/trace",
			"busbar trace docs/examples/trace -c dgx-h100:1 -l 1x2",
			"busbar trace docs/examples/trace -c dgx-h100:1 -l 1x2 -m gpt2 --seq 64",
			"busbar trace rank0.pt.trace.json.gz rank1.pt.trace.json.gz",
			"busbar trace report.sqlite --json",
		},
		Typed: typed[query.Trace](report.Traced),
	},
	{
		Name: "self-test", After: "schema",
		Help: "Check that this program works on this machine.",
		About: "Runs each part once on a case whose answer is known: presets, schedules, collectives in memory, " +
			"predictions, the doctor. It needs no GPU, no network and no rights; it takes seconds. Exit code 1: a " +
			"check failed.",
		Examples: []string{
			"busbar self-test",
		},
		Typed: typed[query.SelfTest](report.SelfTest),
	},
}
