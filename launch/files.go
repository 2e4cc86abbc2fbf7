package launch

import (
	"bytes"
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"
	"text/template"
	"unicode"

	"busbar.dev/internal/words"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// File is one that starts the plan or tells a program of it.
type File struct {
	Name string `json:"name"`
	Text string `json:"text"`
	Run  bool   `json:"executable,omitempty"` // it is a script
}

// Left is a file that was not written, and why.
type Left struct {
	Name   string `json:"file"`
	Reason string `json:"reason"`
}

// texts are the files as they look like, with places for what a plan says, and scripts those that are the same for all
// plans: the programs that DDP, FSDP2, DeepSpeed and Hugging Face's Trainer run, which read plan.json.
//
//go:embed texts scripts
var texts embed.FS

var templates = sync.OnceValue(func() *template.Template {
	return template.Must(template.New("").Funcs(template.FuncMap{
		"join": path.Join, "line": line, "lower": strings.ToLower, "mebi": mebi, "py": py, "quote": quote,
		"json": func(v any) (string, error) { text, err := json.Marshal(v); return string(text), err },
		"sub":  func(a, b int64) int64 { return a - b },
	}).ParseFS(texts, "texts/*"))
})

// Files are all that the plan has a use for. dir is the folder as nodes see it.
func (p *Plan) Files(dir string) ([]File, []Left, error) {
	hosts, err := p.Hosts()
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return nil, nil, err
	}
	w := &writer{Plan: p, Job: p.job, Dir: path.Clean(dir), Hosts: hosts, Each: len(hosts[0].GPUs)}
	even := true
	for _, h := range hosts {
		even = even && len(h.GPUs) == w.Each
	}
	uneven := func(why string) string { return when(!even, "nodes have different numbers of ranks"+why) }
	if p.job != nil {
		w.Framework, w.Split = p.job.Framework, p.job.Split
	}
	const alike = ", and pods of a job are alike"
	w.SetReason = cmp.Or(uneven(alike), w.oneJob())
	w.put("plan.json", b.String(), "")
	w.add("nccl.env", "")
	w.add("hostfile", "")
	w.rankfile()
	w.add("torchrun.sh", uneven(", which torchrun's static order cannot say"))
	w.add("job.sbatch",
		uneven("; start the ranks yourself with srun, SLURM_HOSTFILE=slurm.hosts and --distribution=arbitrary"))
	w.add("slurm.hosts", when(p.Placeholders, "the hosts are not known; Slurm's own order is taken"))
	w.add("preflight.sh", when(len(hosts) == 1, "there is one node, which need not reach others"))
	w.add("job.yaml", uneven(alike))
	w.add("jobset.yaml", w.SetReason)
	w.add("elastic.sh", cmp.Or(w.jobless(), when(len(hosts) < 2, "there is one node"),
		uneven(", and elastic agents are alike"), w.fixedRanks()))
	w.add("trainjob.yaml", cmp.Or(w.jobless(), uneven(", and nodes of a TrainJob are alike")))
	w.addFrameworks()
	w.add("mesh.py", w.jobless())
	return w.files, w.left, nil
}

// when is a reason that may not hold.
func when(holds bool, reason string) string {
	if holds {
		return reason
	}
	return ""
}

// writer makes the files. What is exported is for their texts.
type writer struct {
	Plan      *Plan
	Dir       string
	Hosts     []Host
	Each      int    // ranks of the first node
	SetReason string // why there is no jobset.yaml

	// Of the plan's job; nil where it has places alone.
	Job   *workload.Job
	Split workload.Split
	// Of the framework whose files are written.
	Framework *workload.Framework
	Dims      workload.Dims
	Arch      workload.Architecture
	Details   workload.Details
	Scaling   scaling

	files []File
	left  []Left
}

// put adds a file, or the reason why there is none.
func (w *writer) put(name, text, reason string) {
	if reason != "" {
		w.left = append(w.left, Left{name, reason})
		return
	}
	run := strings.HasSuffix(name, ".sh") || strings.HasSuffix(name, ".sbatch")
	w.files = append(w.files, File{name, shown(text), run})
}

// add adds the file whose text has its name.
func (w *writer) add(name, reason string) {
	text := ""
	if reason == "" {
		text, reason = fill(name, w)
	}
	w.put(name, text, reason)
}

// fill is a text filled in.
func fill(name string, data any) (text, reason string) {
	var b strings.Builder
	if err := templates().ExecuteTemplate(&b, name+".tmpl", data); err != nil {
		return "", err.Error()
	}
	return b.String(), ""
}

// Header says how a file came about, in the comments of its language.
func (w *writer) Header(what string) string {
	p := w.Plan
	text := fmt.Sprintf("# %s\n# Made by: %s\n# %s on %s: %s on %s, %s; predicted step %.4g s.", what, line(p.Made),
		line(p.Job.Model), line(p.Cluster), words.Plural(w.Ranks(), "rank"), words.Plural(len(w.Hosts), "node"),
		p.Job.Parallel, p.Job.Step)
	return text + when(p.Placeholders,
		"\n# Host names are placeholders: the scheduler picks the nodes, or make the files again with --hosts.")
}

// line is a text that stays in its comment.
func line(s string) string {
	return shown(strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s))
}

// shown is a text without what does not show: control characters other than ends of lines and tabs, and those of
// direction and format, with which a line reads as another than it is.
func shown(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' && r != '\t' || unicode.Is(unicode.Cf, r) {
			return -1
		}
		return r
	}, s)
}

// Ranks is how many there are.
func (w *writer) Ranks() int { return ranksOf(w.Hosts) }

// Name is that of the job.
func (w *writer) Name() string { return jobName(w.Plan.Job.Model) }

// HalfHosts is half of the nodes, with which an elastic job goes on.
func (w *writer) HalfHosts() int { return (len(w.Hosts) + 1) / 2 }

func (w *writer) rankfile() {
	var b strings.Builder
	reason := ""
	fmt.Fprintln(&b, w.Header(fmt.Sprintf("Every rank's host and processors, for Open MPI 4: mpirun --mca "+
		"rmaps_rank_file_physical 1 --rankfile rankfile -n %d busbar exec --plan %s -- PROGRAM", w.Ranks(), line(w.Dir))))
	rank := 0
	for _, h := range w.Hosts {
		for _, g := range h.GPUs {
			gpu := &w.Plan.Types[h.Type].GPUs[g]
			if gpu.Cores == "" {
				reason = cmp.Or(reason, "the processors near "+gpu.Name+" of "+h.Name+
					" are not known; hostfile gives the same order, and busbar exec binds")
			}
			fmt.Fprintf(&b, "rank %d=%s slot=%s\n", rank, h.Name, gpu.Cores)
			rank++
		}
	}
	w.put("rankfile", b.String(), reason)
}

// quote is a text for a shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// mebi is a size in MiB.
func mebi(b unit.Bytes) int64 { return int64(b) >> 20 }

// py is a truth value of Python.
func py(yes bool) string {
	if yes {
		return "True"
	}
	return "False"
}

// fixedRanks is why a job cannot go on with fewer nodes than the plan has; "" where it can.
func (w *writer) fixedRanks() string {
	f := w.Framework
	switch {
	case f == nil:
		return "no framework was given; with --framework ddp, fsdp or hf a job continues with fewer nodes"
	case f.Name != "ddp" && f.Name != "fsdp" && f.Name != "hf":
		return "the configuration of " + f.Title +
			" fixes the number of ranks; when a node is lost JobSet and Slurm's --requeue start all again from the last " +
			"checkpoint"
	case w.Each%w.Split.TP != 0:
		return fmt.Sprintf("tp=%d does not fit a node of %d GPUs", w.Split.TP, w.Each)
	}
	return ""
}

// meshDim is a dimension of a device mesh.
type meshDim struct {
	Name string
	Size int
}

// Mesh is the plan's groups for PyTorch, the slowest dimension first.
func (w *writer) Mesh() []meshDim {
	s := w.Split
	replicas := []meshDim{{"dp", s.DP}}
	if s.ZeRO > 0 && s.Shard > 1 && s.Shard < s.DP && s.DP%s.Shard == 0 && s.CP == 1 {
		replicas = []meshDim{{"dp_replicate", s.DP / s.Shard}, {"dp_shard", s.Shard}}
	}
	dims := append([]meshDim{{"pp", s.PP}}, replicas...)
	if s.Order == workload.TensorPipelineData {
		dims = append(replicas, meshDim{"pp", s.PP})
	}
	dims = append(dims, meshDim{"cp", s.CP}, meshDim{"tp", s.TP})
	return slices.DeleteFunc(dims, func(d meshDim) bool { return d.Size <= 1 && d.Name != "dp" })
}
