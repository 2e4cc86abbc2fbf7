package doctor

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/test/synth"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/sim"
)

// examineFiles reads files and applies all rules.
func examineFiles(t *testing.T, words *evidence.Vocabulary, files []synth.File) *Report {
	t.Helper()
	r := words.NewReader()
	for _, f := range files {
		if err := r.Read(f.Name, strings.NewReader(f.Text)); err != nil {
			t.Fatal(err)
		}
	}
	set, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	return Examine(set)
}

// says is everything that a finding tells.
func says(f *finding.Finding) string {
	text := f.Title + "\n" + f.Cause + "\n" + f.Where + "\n"
	for _, q := range f.Evidence {
		text += q.Text + "\n"
	}
	return text
}

// A planted fault is the first finding above a note and names the rank or host that has it; the same job without it has
// none.
func TestPlantedFaults(t *testing.T) {
	cases, err := synth.Cases()
	if err != nil {
		t.Fatal(err)
	}
	words := vocabulary()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			sick := examineFiles(t, words, c.Sick)
			if len(sick.Findings) > 1 && strings.HasPrefix(sick.Findings[0].ID, "job-") &&
				(strings.Contains(says(&sick.Findings[0]), c.Who) || sick.Findings[1].ExplainedBy == sick.Findings[0].ID) {
				sick.Findings = sick.Findings[1:] // the job's own numbers say it too
			}
			if m, _ := model(); m.Consequence(c.Want) && sick.Undecided { // the question; what decides it comes first
				sick.Findings = sick.Findings[max(0, slices.Index(ids(sick), c.Want)):]
			}
			if len(sick.Findings) == 0 || sick.Findings[0].ID != c.Want {
				t.Fatalf("%v, want %s of %q first: %s", ids(sick), c.Want, c.Who, says(&sick.Findings[0]))
			}
			f := &sick.Findings[0]
			if f.Severity == finding.Note || len(f.Evidence) == 0 || !strings.Contains(says(f), c.Who) {
				t.Errorf("%s does not name %q with lines for it: %s", f.Severity, c.Who, says(f))
			}
			for _, q := range f.Evidence {
				if !quoted(c.Sick, q) {
					t.Errorf("quotes what is not there: %+v", q)
				}
			}
			for _, other := range sick.Findings[1:] {
				if other.Severity == finding.Error && other.ExplainedBy == "" {
					t.Errorf("%s stands beside it as an error of its own: %s", other.ID, other.Title)
				}
			}
			if well := examineFiles(t, words, c.Healthy); finding.Serious(well.Findings) {
				t.Errorf("the healthy job has %v", ids(well))
			} else if well.Unknown != 0 {
				t.Errorf("%d lines of the healthy job are not understood: %v", well.Unknown, well.Samples)
			}
		})
	}
}

// quoted reports whether a quote is the line of the file that it names.
func quoted(files []synth.File, q finding.Quote) bool {
	for _, f := range files {
		if lines := strings.Split(f.Text, "\n"); f.Name == q.File && q.Line >= 1 && q.Line <= len(lines) {
			text := strings.TrimSuffix(q.Text, " …")
			if strings.HasPrefix(strings.TrimSpace(lines[q.Line-1]), strings.TrimSpace(text)) {
				return true
			}
		}
	}
	return false
}

// curve is a synthetic all-reduce sweep of a machine, each size so many times as long as predicted, as a judged curve.
func curve(t *testing.T, m *synth.Machine, slow func(size int64) float64) (*Curve, *result.Sweep, *cluster.Cluster) {
	t.Helper()
	list, err := m.Sweeps(sim.Fitted(), 0.02, synth.Sizes(13, 4), coll.AllReduce)
	if err != nil {
		t.Fatal(err)
	}
	g := &list[0]
	for i, size := range g.Sizes {
		g.Micros[i] *= slow(size)
	}
	text, err := m.Table(g)
	if err != nil {
		t.Fatal(err)
	}
	out, err := nccltests.ReadOutput("synthetic.txt", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	s := out.Tables[0].Sweeps[0]
	c, _, err := m.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	x, err := truth.On(s, c, nccl.Newest, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := NewCurve(x)
	if err != nil {
		t.Fatal(err)
	}
	return got, s, c
}

// A table as the model predicts it raises nothing; one that stops at the rate of one NIC, or that sockets could have
// made, is told so, with both figures in the document.
func TestSyntheticBench(t *testing.T) {
	m := synth.Machines()[0]
	predicted := map[int64]float64{}
	healthy, _, _ := curve(t, &m, func(int64) float64 { return 1 })
	for _, p := range healthy.Points {
		if predicted[int64(p.Size)] = p.BusBW; p.Ratio() < 0.9 || p.Ratio() > 1.1 {
			t.Errorf("%d bytes: %.2f times the prediction", p.Size, p.Ratio())
		}
	}
	capped := func(gbps float64) func(size int64) float64 {
		return func(size int64) float64 { return max(1, predicted[size]/gbps) }
	}
	for _, c := range []struct {
		name, id, says string
		slow           func(size int64) float64
	}{
		{"healthy", "", "", func(int64) float64 { return 1 }},
		{"one NIC of eight", "bench-peak", "the rate of one NIC (50 GB/s) of 8", capped(47)},
		{"sockets", "bench-peak", "TCP sockets", func(int64) float64 { return 80 }},
		{"late start", "bench-latency", "", func(size int64) float64 {
			if size < 1<<16 {
				return 6
			}
			return 1
		}},
	} {
		s, _, _ := curve(t, &m, c.slow)
		r := Bench([]*Curve{s})
		switch {
		case c.id == "" && finding.Serious(r.Findings):
			t.Errorf("%s: %v", c.name, ids(r))
		case c.id != "" && (len(r.Findings) == 0 || r.Findings[0].ID != c.id || r.Findings[0].Severity == finding.Note ||
			!strings.Contains(r.Findings[0].Cause, c.says)):
			t.Errorf("%s: %+v", c.name, r.Findings)
		}
		if r.Healthy != (c.id == "") || s.NICs != 8 || len(s.Points) != 13 || s.Points[12].Expected <= 0 || s.Nodes != 2 {
			t.Errorf("%s: %+v", c.name, s)
		}
	}
}

// A curve that nothing predicts says why, and is not judged.
func TestSyntheticUnpredicted(t *testing.T) {
	m := synth.Machines()[4]
	_, s, _ := curve(t, &m, func(int64) float64 { return 1 })
	x := Unpredicted(s, m.Name, "nothing is known")
	if len(x.Points) != 13 || x.NICs != 0 || x.Points[12].Expected != 0 || x.Unjudged == "" {
		t.Errorf("%+v", x)
	}
	if r := Bench([]*Curve{x}); len(r.Findings) != 0 {
		t.Errorf("%+v", r.Findings)
	}
}
