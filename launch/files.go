package launch

import (
	"bytes"
	"fmt"
	"path"
	"strings"
	"unicode"

	"busbar.dev/internal/words"
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

// Files are all that the plan has a use for. dir is the folder as nodes see it.
func (p *Plan) Files(dir string) (files []File, left []Left, err error) {
	hosts, err := p.Hosts()
	if err != nil {
		return nil, nil, err
	}
	var b bytes.Buffer
	if err := p.Write(&b); err != nil {
		return nil, nil, err
	}
	files = []File{{Name: "plan.json", Text: b.String()}}
	each := len(hosts[0].GPUs)
	even := true
	for _, h := range hosts {
		even = even && len(h.GPUs) == each
	}
	w := &writer{p: p, dir: path.Clean(dir), hosts: hosts, each: each, even: even}
	list := []maker{
		{"nccl.env", false, w.nccl},
		{"hostfile", false, w.hostfile},
		{"rankfile", false, w.rankfile},
		{"torchrun.sh", true, w.torchrun},
		{"job.sbatch", true, w.sbatch},
		{"slurm.hosts", false, w.slurmHosts},
		{"preflight.sh", true, w.preflight},
		{"job.yaml", false, w.kubernetes},
		{"jobset.yaml", false, w.jobset},
		{"elastic.sh", true, w.elastic},
		{"trainjob.yaml", false, w.trainJob},
	}
	for _, x := range append(append(list, w.frameworkFiles()...), maker{"mesh.py", false, w.mesh}) {
		text, reason := x.text()
		if reason != "" {
			left = append(left, Left{x.name, reason})
			continue
		}
		files = append(files, File{x.name, text, x.run})
	}
	return files, left, nil
}

// maker makes a file: its text, or the reason why there is none.
type maker struct {
	name string
	run  bool
	text func() (string, string)
}

// frameworkFiles are those of the framework that the plan is for; of any that has them, Megatron-LM's and DeepSpeed's.
func (w *writer) frameworkFiles() []maker {
	plain := []maker{
		{"train.py", false, w.static(trainPy)},
		{"model.py", false, w.static(modelPy)},
		{"hooks.py", false, w.static(hooksPy)},
	}
	of := map[string][]maker{
		"megatron": {{"megatron.args", false, w.megatronArgs}, {"megatron.sh", true, w.megatronScript}},
		"nemo":     {{"bridge.py", false, w.bridge}, {"nemo.sh", true, w.nemoScript}},
		"torchtitan": {
			{"torchtitan.toml", false, w.titan},
			{"torchtitan_model.py", false, w.titanModel},
			{"torchtitan.sh", true, w.titanScript},
		},
		"deepspeed": append([]maker{
			{"deepspeed.json", false, w.deepspeed}, {"deepspeed.sh", true, w.plainScript("deepspeed")},
		}, plain...),
		"fsdp": append([]maker{{"fsdp.sh", true, w.plainScript("fsdp")}, {"accelerate.yaml", false, w.accelerate}},
			plain...),
		"ddp": append([]maker{{"ddp.sh", true, w.plainScript("ddp")}}, plain...),
		"hf": {
			{"hf.sh", true, w.hfScript},
			{"train_hf.py", false, w.hfProgram},
			{"hf_args.json", false, w.hfArgs},
			{"model.json", false, w.hfModel},
			{"lora.json", false, w.hfAdapters},
		},
	}
	if w.p.job != nil && w.p.job.Framework != nil {
		f := w.p.job.Framework
		if f.Name == "hf" && w.hfShards() == "deepspeed" {
			return append(of["hf"], of["deepspeed"][0])
		}
		if len(of[f.Name]) == 0 {
			return []maker{{f.Name, false, func() (string, string) { return "", "busbar writes no files for " + f.Title }}}
		}
		return of[f.Name]
	}
	var list []maker
	for _, name := range []string{"megatron", "deepspeed"} {
		if _, reason := w.framework(name); reason != "" {
			list = append(list, of[name][0]) // which says why
			continue
		}
		list = append(list, of[name]...)
	}
	return list
}

// writer makes the text of files. Each of its methods gives the text, or the reason why there
// is none.
type writer struct {
	p     *Plan
	dir   string
	hosts []Host
	each  int  // ranks of the first node
	even  bool // and of all others
}

// header says how a file came about, in the comments of its language.
func (w *writer) header(what string) string {
	p := w.p
	var b strings.Builder
	fmt.Fprintf(&b, "# %s\n", what)
	fmt.Fprintf(&b, "# Made by: %s\n", line(p.Made))
	fmt.Fprintf(&b, "# %s on %s: %s on %s, %s; predicted step %.4g s.\n", line(p.Job.Model), line(p.Cluster),
		words.Plural(p.ranks(w.hosts), "rank"), words.Plural(len(w.hosts), "node"), p.Job.Parallel, p.Job.Step)
	if p.Placeholders {
		b.WriteString("# Host names are placeholders: the scheduler picks the nodes, or make the files again with --hosts.\n")
	}
	return b.String()
}

// line is a text that stays in its comment.
func line(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '\u2028' || r == '\u2029' {
			return ' '
		}
		return r
	}, s)
}

func (p *Plan) ranks(hosts []Host) int {
	n := 0
	for _, h := range hosts {
		n += len(h.GPUs)
	}
	return n
}

func (w *writer) nccl() (string, string) {
	var b strings.Builder
	b.WriteString(w.header("Settings of NCCL " + line(w.p.NCCL) + ", for NCCL_CONF_FILE or a shell (set -a; . " +
		"nccl.env). `busbar exec` sets them and each node's own."))
	b.WriteString("# What is not here is best left to NCCL, or its effect cannot be predicted (buffer sizes, service " +
		"levels).\n")
	for _, s := range w.p.Settings {
		fmt.Fprintf(&b, "\n# %s\n%s=%s\n", line(s.Reason), s.Name, s.Value)
	}
	for _, s := range w.p.Try {
		fmt.Fprintf(&b, "\n# To try: %s\n# %s=%s\n", line(s.Reason), s.Name, s.Value)
	}
	one := len(w.p.Types) == 1
	for _, t := range w.p.Types {
		if t.Topology != "" {
			text := "NCCL_TOPO_FILE=" + path.Join(w.dir, t.Topology)
			if !one || quote(w.dir) != w.dir {
				text = "# " + text // busbar exec sets it
			}
			fmt.Fprintf(&b, "\n# Nodes of type %s show themselves wrongly: %s\n%s\n", line(t.Name), line(t.Why), text)
		}
		for _, s := range t.Settings {
			text := s.Name + "=" + s.Value
			if !one {
				text = "# " + text // differs from node to node: busbar exec sets it
			}
			fmt.Fprintf(&b, "\n# Nodes of type %s: %s\n%s\n", line(t.Name), line(s.Reason), text)
		}
	}
	return b.String(), ""
}

func (w *writer) hostfile() (string, string) {
	var b strings.Builder
	b.WriteString(w.header("Hosts in the order of ranks, for DeepSpeed (--hostfile) and Open MPI (mpirun --hostfile " +
		"hostfile --map-by slot)."))
	for _, h := range w.hosts {
		fmt.Fprintf(&b, "%s slots=%d\n", h.Name, len(h.GPUs))
	}
	return b.String(), ""
}

func (w *writer) rankfile() (string, string) {
	var b strings.Builder
	b.WriteString(w.header(fmt.Sprintf("Every rank's host and processors, for Open MPI 4: mpirun --mca "+
		"rmaps_rank_file_physical 1 --rankfile rankfile -n %d busbar exec --plan %s -- PROGRAM", w.p.ranks(w.hosts),
		line(w.dir))))
	rank := 0
	for _, h := range w.hosts {
		for _, g := range h.GPUs {
			cores := w.p.Types[h.Type].GPUs[g].Cores
			if cores == "" {
				return "", "the processors near " + w.p.Types[h.Type].GPUs[g].Name + " of " + h.Name +
					" are not known; hostfile gives the same order, and busbar exec binds"
			}
			fmt.Fprintf(&b, "rank %d=%s slot=%s\n", rank, h.Name, cores)
			rank++
		}
	}
	return b.String(), ""
}

const uneven = "nodes have different numbers of ranks"

func (w *writer) torchrun() (string, string) {
	if !w.even {
		return "", uneven + ", which torchrun's static order cannot say"
	}
	find := `NODE_RANK=${NODE_RANK:?set NODE_RANK: 0 on the first node, 1 on the next}
MASTER_ADDR=${MASTER_ADDR:?set MASTER_ADDR: the name of the first node}
`
	switch {
	case len(w.hosts) == 1: // whichever node it is
		find = "NODE_RANK=${NODE_RANK:-0}\nMASTER_ADDR=${MASTER_ADDR:-127.0.0.1}\n"
	case !w.p.Placeholders:
		find = fmt.
			Sprintf(`: "${NODE_RANK:=$(grep -v '^#' "$PLAN/hostfile" | cut -d' ' -f1 | grep -nixE "$(hostname -s)([.].*)?" | cut -d: -f1 | head -n1 | awk '{print $1-1}')}"
: "${NODE_RANK:?this host is not in $PLAN/hostfile}"
MASTER_ADDR=${MASTER_ADDR:-%s}
`, w.hosts[0].Name)
	}
	return "#!/bin/sh\n" + w.header("Run on every node: torchrun.sh PROGRAM ARGUMENTS… The order of ranks is the "+
		"plan's, since node numbers are fixed.") +
		fmt.Sprintf(`set -eu
PLAN=${BUSBAR_PLAN:-$(cd "$(dirname "$0")" && pwd)}
%sexec torchrun --nnodes=%d --nproc_per_node=%d --node_rank="$NODE_RANK" --master_addr="$MASTER_ADDR" --master_port="${MASTER_PORT:-29500}" \
  --no_python busbar exec --plan "$PLAN" -- "$@"
`, find, len(w.hosts), w.each), ""
}

// quote is a text for a shell.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// preflightWords are what must succeed before the training starts: every pair of hosts reaches
// each other at a like rate, and sums are right.
const preflightWords = "busbar bench --op all_reduce -b 1M -e 16M -f 16 --iters 5 --check -q"

func (w *writer) preflight() (string, string) {
	if len(w.hosts) == 1 {
		return "", "there is one node, which need not reach others"
	}
	return "#!/bin/sh\n" + w.header("Must succeed before the training starts: hosts reach each other over TCP, sums are "+
		"right. Start it as one rank per node (srun --ntasks-per-node=1, mpirun --map-by ppr:1:node). GPUs take no part: "+
		"busbar bench gpu measures those.") +
		"set -eu\nexec " + preflightWords + "\n", ""
}
