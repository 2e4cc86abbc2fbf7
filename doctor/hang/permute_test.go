package hang

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"busbar.dev/input/flightrec"
	"busbar.dev/input/joblog"
	"busbar.dev/input/ras"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/synth/livejob"
)

// eachCapture reads every capture of a live job once.
func eachCapture(t *testing.T, do func(s *scenario, c *Case)) {
	t.Helper()
	dir := filepath.Join(corpus.Dir(t), "corpus", "live-jobs")
	index, err := os.ReadFile(filepath.Join(dir, "INDEX.jsonl"))
	if err != nil {
		t.Skip("no captures of live jobs: ", err)
	}
	for line := range bytes.Lines(index) {
		s := new(scenario)
		if err := json.Unmarshal(line, s); err != nil {
			t.Fatal(err)
		}
		do(s, capture(t, filepath.Join(dir, s.Name)))
	}
}

var lastNumber = regexp.MustCompile(`^(.*?)(\d+)(\D*)$`)

// permuted is the job as its launcher would have numbered the same processes otherwise: rank r is rank p[r], and every
// host has another name. Communicators of some ranks keep their own numbers, which say nothing about the job's.
func permuted(c *Case, p []int) *Case {
	world := newJob(c).world
	rank := func(r int) int {
		if r >= 0 && r < len(p) {
			return p[r]
		}
		return r
	}
	host := func(h string) string {
		if h != "" {
			h = "site-" + h
		}
		return h
	}
	file := func(name string) string {
		n := flightrec.RankOf(name)
		m := lastNumber.FindStringSubmatch(name)
		if n < 0 || m == nil || m[2] != strconv.Itoa(n) || n >= len(p) {
			return name
		}
		return m[1] + strconv.Itoa(p[n]) + m[3]
	}
	out := NewCase()
	out.rec = permutedSet(c.rec, rank, file)
	for _, r := range c.ras {
		x := *r
		x.Comms = slices.Clone(r.Comms)
		for i := range x.Comms {
			m := &x.Comms[i]
			list := func(l []ras.Rank) []ras.Rank {
				l = slices.Clone(l)
				for k := range l {
					if l[k].Host = host(l[k].Host); m.Size == world {
						l[k].Rank = rank(l[k].Rank)
					}
				}
				return l
			}
			m.Ranks, m.Missing, m.Lags = list(m.Ranks), list(m.Missing), slices.Clone(m.Lags)
			for k := range m.Lags {
				m.Lags[k].Ranks = list(m.Lags[k].Ranks)
			}
		}
		out.ras = append(out.ras, &x)
	}
	for _, l := range c.logs {
		x := *l
		x.Name, x.Events = file(l.Name), slices.Clone(l.Events)
		for i := range x.Events {
			e := &x.Events[i]
			e.Rank, e.Host, e.Peer = rank(e.Rank), host(e.Host), host(e.Peer)
			if e.NRanks == world {
				e.CommRank = rank(e.CommRank)
			}
			e.Ranks = slices.Clone(e.Ranks)
			for k := range e.Ranks {
				e.Ranks[k] = rank(e.Ranks[k])
			}
		}
		out.logs = append(out.logs, &x)
	}
	for _, f := range c.stacks {
		f.name, f.list = file(f.name), slices.Clone(f.list)
		for i := range f.list {
			f.list[i].Rank = rank(f.list[i].Rank)
		}
		out.stacks = append(out.stacks, f)
	}
	for _, in := range c.inspect {
		in.records = slices.Clone(in.records)
		for i := range in.records {
			r := &in.records[i]
			if r.Host = host(r.Host); int(r.Ranks) == world {
				r.Rank = int32(rank(int(r.Rank)))
			}
		}
		out.inspect = append(out.inspect, in)
	}
	out.notes = c.notes
	return out
}

func permutedSet(s *flightrec.Set, rank func(int) int, file func(string) string) *flightrec.Set {
	out := &flightrec.Set{Sigs: s.Sigs, Frames: s.Frames, Groups: slices.Clone(s.Groups)}
	for i := range out.Groups {
		g := &out.Groups[i]
		g.Ranks = slices.Clone(g.Ranks)
		for k := range g.Ranks {
			g.Ranks[k] = rank(g.Ranks[k])
		}
		slices.Sort(g.Ranks)
	}
	for _, d := range s.Dumps {
		x := *d
		x.Name, x.Rank = file(d.Name), rank(d.Rank)
		out.Dumps = append(out.Dumps, &x)
	}
	return out
}

func ranksOf(v *Verdict) []int {
	var list []int
	for _, r := range v.Ranks {
		list = append(list, r.Rank)
	}
	return list
}

// TestPermuted numbers the ranks of every capture otherwise: the verdict names the same processes.
func TestPermuted(t *testing.T) {
	random := rand.New(rand.NewPCG(24, 1))
	eachCapture(t, func(s *scenario, c *Case) {
		for _, signal := range []string{"", fromRAS, fromRecorder, fromLog} {
			part := only(c, signal)
			if signal == fromRAS && newJob(part).world != newJob(c).world {
				continue // which communicator is the job's is not known
			}
			v := part.Judge()
			for range 4 {
				p := random.Perm(newJob(part).world)
				if len(p) == 0 {
					break
				}
				got := permuted(part, p).Judge()
				var want []int
				for _, r := range ranksOf(v) {
					want = append(want, p[r])
				}
				slices.Sort(want)
				if got.Kind != v.Kind || got.State != v.State || !slices.Equal(ranksOf(got), want) ||
					got.Confidence != v.Confidence {
					t.Errorf("%s %s: %s %s %v %.2f; with ranks %v: %s %s %v %.2f, want %v\n%s\n%s", s.Name, signal, v.State, v.Kind,
						ranksOf(v), v.Confidence, p, got.State, got.Kind, ranksOf(got), got.Confidence, want, v.Text, got.Text)
				}
			}
		}
	})
}

// lessers are what is left of a case when a part of it was not collected.
func lessers(c *Case) map[string]*Case {
	out := map[string]*Case{}
	with := func(name string, change func(*Case)) {
		x := *c
		set := *c.rec
		x.rec = &set
		change(&x)
		if !x.Empty() {
			out[name] = &x
		}
	}
	for _, signal := range []string{fromRAS, fromRecorder, fromLog} {
		if x := only(c, signal); !x.Empty() {
			out["only "+signal] = x
		}
	}
	with("no ras", func(x *Case) { x.ras = nil })
	with("no dumps", func(x *Case) { x.rec = flightrec.NewSet() })
	with("no logs", func(x *Case) { x.logs = nil })
	with("no stacks", func(x *Case) { x.stacks = nil })
	with("no inspector", func(x *Case) { x.inspect = nil })
	with("no dumps and logs", func(x *Case) { x.rec, x.logs = flightrec.NewSet(), nil })
	with("no ras and logs", func(x *Case) { x.ras, x.logs = nil, nil })
	with("no ras and dumps", func(x *Case) { x.ras, x.rec = nil, flightrec.NewSet() })
	for i := range c.ras {
		with("one answer "+strconv.Itoa(i), func(x *Case) { x.ras = c.ras[i : i+1] })
		with("only answer "+strconv.Itoa(i), func(x *Case) { *x = Case{rec: flightrec.NewSet(), ras: c.ras[i : i+1]} })
	}
	json := slices.DeleteFunc(slices.Clone(c.ras), func(r *ras.Report) bool { return !r.JSON })
	text := slices.DeleteFunc(slices.Clone(c.ras), func(r *ras.Report) bool { return r.JSON })
	with("ras as json", func(x *Case) { x.ras = json })
	with("ras as text", func(x *Case) { x.ras = text })
	with("only ras as text", func(x *Case) { *x = Case{rec: flightrec.NewSet(), ras: text} })
	for r := range newJob(c).world {
		not := func(d *flightrec.Dump) bool { return d.Rank == r }
		with(fmt.Sprintf("no dump of %d", r),
			func(x *Case) { x.rec.Dumps = slices.DeleteFunc(slices.Clone(x.rec.Dumps), not) })
		with(fmt.Sprintf("only dumps but %d", r), func(x *Case) {
			rec := *c.rec
			rec.Dumps = slices.DeleteFunc(slices.Clone(c.rec.Dumps), not)
			*x = Case{rec: &rec}
		})
		files := newJob(c).files
		with(fmt.Sprintf("no log of %d", r), func(x *Case) {
			x.logs = slices.DeleteFunc(slices.Clone(x.logs),
				func(l *joblog.Log) bool { n, ok := files[l.Name]; return ok && n == r })
		})
	}
	return out
}

// sure is from where on a verdict is acted on without a further look.
const sure = 0.75

// wrong reports a verdict that is not the planted fault nor a weaker word for it, and sure of itself.
func wrong(v *Verdict, culprits []int, kinds []Kind, hung bool) bool {
	if v.Confidence < sure {
		return false
	}
	switch v.State {
	case Unknown:
		return false
	case Healthy:
		return hung
	}
	if slices.Equal(ranksOf(v), culprits) && (slices.Contains(kinds, v.Kind) || v.Kind == UnknownKind) {
		return false
	}
	// A rank that loads or saves is a late rank to who sees no stack.
	weaker := map[Kind]Kind{Checkpoint: Late, DataLoading: Late, Compiling: Late, Evaluation: Late}
	return !slices.Equal(ranksOf(v), culprits) ||
		!slices.ContainsFunc(kinds, func(k Kind) bool { return weaker[k] == v.Kind })
}

// TestLess takes each signal away from every capture: a verdict may get weaker, but is never wrong and sure.
func TestLess(t *testing.T) {
	judged, right := 0, 0
	eachCapture(t, func(s *scenario, c *Case) {
		kinds := kindsOf[s.Truth.Cause]
		for name, part := range lessers(c) {
			v := part.Judge()
			judged++
			if slices.Equal(ranksOf(v), s.Truth.Culprits) && slices.Contains(kinds, v.Kind) {
				right++
			}
			if wrong(v, s.Truth.Culprits, kinds, s.Truth.Hung) {
				t.Errorf("%s, %s: %s %s %v %.2f, planted %s %v: %s", s.Name, name, v.State, v.Kind, ranksOf(v), v.Confidence,
					s.Truth.Cause, s.Truth.Culprits, v.Text)
			}
		}
	})
	t.Logf("%d parts of captures, %d named right by rank and kind, none wrong and sure", judged, right)
}

// TestMerged has the output of all ranks in one file, as launchers write it: the verdict may get weaker, but is never
// wrong and sure.
func TestMerged(t *testing.T) {
	dir := filepath.Join(corpus.Dir(t), "corpus", "live-jobs")
	judged, right := 0, 0
	eachCapture(t, func(s *scenario, c *Case) {
		var out bytes.Buffer
		for _, pattern := range []string{"stderr.*.log", "nccl.*.log"} {
			names, err := filepath.Glob(filepath.Join(dir, s.Name, pattern))
			if err != nil {
				t.Fatal(err)
			}
			for _, name := range names {
				data, err := os.ReadFile(name)
				if err != nil {
					t.Fatal(err)
				}
				for line := range bytes.Lines(data) {
					if !bytes.HasPrefix(line, []byte("[rank")) {
						fmt.Fprintf(&out, "[rank%d]:", flightrec.RankOf(name))
					}
					out.Write(line)
				}
			}
		}
		for _, alone := range []bool{false, true} {
			x := *c
			if x.logs = nil; alone {
				x = *NewCase()
			}
			if _, err := x.Add("job.log", out.Bytes()); err != nil {
				t.Fatal(err)
			}
			v := x.Judge()
			judged++
			kinds := kindsOf[s.Truth.Cause]
			if slices.Equal(ranksOf(v), s.Truth.Culprits) && slices.Contains(kinds, v.Kind) {
				right++
			}
			if wrong(v, s.Truth.Culprits, kinds, s.Truth.Hung) {
				t.Errorf("%s, one log (alone %v): %s %s %v %.2f, planted %s %v: %s", s.Name, alone, v.State, v.Kind, ranksOf(v),
					v.Confidence, s.Truth.Cause, s.Truth.Culprits, v.Text)
			}
		}
	})
	t.Logf("%d captures with one log, %d named right by rank and kind", judged, right)
}

// TestLessSynthetic does the same to synthetic jobs of other shapes.
func TestLessSynthetic(t *testing.T) {
	for _, fault := range []livejob.Fault{
		livejob.None, livejob.Late, livejob.Killed, livejob.Stopped, livejob.Op, livejob.Size, livejob.Order, livejob.Kernel,
	} {
		for _, shape := range [][2]int{{4, 2}, {8, 2}, {8, 4}, {16, 4}} {
			for _, culprit := range []int{0, 3} {
				j := &livejob.Job{Ranks: shape[0], TP: shape[1], Steps: 9, Fault: fault, Culprit: culprit}
				want := []int{culprit}
				if fault == livejob.None {
					want = nil
				}
				for name, part := range lessers(files(t, j)) {
					if v := part.Judge(); wrong(v, want, []Kind{faultKinds[fault]}, fault != livejob.None) {
						t.Errorf("%s at rank %d of %v, %s: %s %s %v %.2f: %s", fault, culprit, shape, name, v.State, v.Kind, ranksOf(v),
							v.Confidence, v.Text)
					}
				}
			}
		}
	}
}
