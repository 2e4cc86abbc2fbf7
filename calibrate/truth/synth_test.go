package truth

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/input/nccltests"
	"busbar.dev/internal/test/synth"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/sim"
)

// points are synthetic sweeps of all machines, timed by the fitted figures.
func points(t testing.TB, spread float64) []synth.Sweep {
	t.Helper()
	var all []synth.Sweep
	for _, m := range synth.Machines() {
		list, err := m.Sweeps(sim.Fitted(), spread, synth.Sizes(7, 8), coll.AllReduce, coll.AllGather)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, list...)
	}
	return all
}

// readPoints reads them back from their lines.
func readPoints(t testing.TB, list []synth.Sweep) result.Sweeps {
	t.Helper()
	text, err := synth.Lines(list)
	if err != nil {
		t.Fatal(err)
	}
	sweeps, left, err := Read("synthetic.jsonl", strings.NewReader(text))
	if err != nil || len(sweeps) != len(list) || len(left) != 0 {
		t.Fatalf("%d sweeps of %d, left %v: %v", len(sweeps), len(list), left, err)
	}
	return sweeps
}

// From its description alone the machine of a sweep is built as it was: predictions are the times that were written.
func TestSyntheticMachines(t *testing.T) {
	rows, left := Predicted(readPoints(t, points(t, 0)))
	if len(rows) != 5*2*7 || len(left) != 0 {
		t.Fatalf("%d rows, left %v", len(rows), left)
	}
	for i := range rows {
		if r := &rows[i]; r.APE > 1e-6 || r.Margin < 1 {
			t.Errorf("%s, %d bytes: %v, measured %v", r.Case.Sweep.ID, r.Size(), r.Predicted, r.Measured())
		}
	}
	s := Rate(rows)
	if s.Machines != 5 || s.Points != 70 || s.Median > 1e-6 || math.Abs(s.Bias-1) > 1e-6 || s.Covered != 1 {
		t.Errorf("%+v", s)
	}
}

// Scores are those of the noise that was added, in all and by machine, class, source's class and size.
func TestSyntheticScores(t *testing.T) {
	const spread = 0.05
	rows, _ := Predicted(readPoints(t, points(t, spread)))
	s := Rate(rows)
	// Half of all normal errors are below 0.674 of their spread, nine tenths below 1.645.
	if s.Median < 0.5*0.674*spread || s.Median > 1.5*0.674*spread || s.P90 < 1.645*spread/2 || s.P90 > 2*1.645*spread ||
		math.Abs(s.Bias-1) > spread/2 {
		t.Errorf("%+v for noise of %v", s, spread)
	}
	for name, by := range map[string]func(*Row) string{
		"class": ByClass, "hardware": ByHardware, "machine": ByMachine, "size": ByMiB,
	} {
		n := 0
		for _, p := range Split(rows, by) {
			if n += p.Points; p.Name == "" || p.Worst > s.Worst || p.Median > s.Worst {
				t.Errorf("by %s: %+v", name, p)
			}
		}
		if n != len(rows) {
			t.Errorf("by %s: %d points of %d", name, n, len(rows))
		}
	}
	names := ""
	for _, p := range Split(rows, func(r *Row) string { return Published(r.Size()) }) {
		names += p.Name + " "
	}
	if names != "small middle large " {
		t.Errorf("sizes in the order %s", names)
	}
}

// A source that gives bandwidths says the same as one that gives times.
func TestBandwidthsAreTimes(t *testing.T) {
	list := points(t, 0.03)
	want := readPoints(t, list)
	for _, form := range []string{"algbw_GBps", "busbw_GBps"} {
		var lines strings.Builder
		for i := range list {
			text, err := json.Marshal(list[i])
			if err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			if err := json.Unmarshal(text, &m); err != nil {
				t.Fatal(err)
			}
			var gb []float64
			for k := range list[i].Sizes {
				op := callOf(want[i], want[i].Points[k].Size)
				bw := float64(op.AlgBytes(list[i].Ranks)) / list[i].Micros[k] / 1e3
				if form == "busbw_GBps" {
					bw *= op.Kind.BusFactor(list[i].Ranks)
				}
				gb = append(gb, bw)
			}
			delete(m, "time_us")
			m[form] = gb
			if text, err = json.Marshal(m); err != nil {
				t.Fatal(err)
			}
			lines.Write(append(text, '\n'))
		}
		got, _, err := Read("f", strings.NewReader(lines.String()))
		if err != nil {
			t.Fatal(err)
		}
		for i, s := range got {
			for k := range s.Points {
				if a, b := s.Points[k].Out.Time.Mean.Micros(), want[i].Points[k].Out.Time.Mean.Micros(); math.Abs(a-b) > 1e-6*b {
					t.Errorf("%s of %s: %v µs, want %v", form, s.ID, a, b)
				}
			}
		}
	}
}

// What a source says against its own figures, and what nothing can be predicted for, is left with the reason.
func TestSyntheticLeft(t *testing.T) {
	list := points(t, 0)[:6]
	sweeps := readPoints(t, list)
	sweeps[0].Published.Anomalous = true
	sweeps[1].Published.Grade = "c"
	sweeps[2].Machine.GPU = "synthetic accelerator"
	sweeps[3].Ranks++
	sweeps[4].Dtype = "float3"
	sweeps[5].Points[2].Out = nil
	cases, left := Gather(sweeps, 0)
	if len(cases) != 1 || len(cases[0].Ops) != 6 || len(left) != 6 {
		t.Fatalf("%d cases, left %v", len(cases), left)
	}
	for i, want := range []struct {
		text string
		fair bool
	}{
		{"anomalous", true},
		{"grade C", true},
		{"not in the catalogue", false},
		{"one rank a GPU", false},
		{"float3", false},
		{"1 size without a time", true},
	} {
		if l := left[i]; !strings.Contains(l.Reason, want.text) || l.Gradable == want.fair || l.Machine == "" ||
			l.Points == 0 {
			t.Errorf("left %+v, want %+v", l, want)
		}
	}
	for _, c := range []struct{ line, want string }{
		{`{"id":"x","collective":7}`, "collective has a JSON number where text in quotes belongs"},
		{`{"id":"x","collective":"all_reduce","nodes":"two"}`, "nodes has a JSON string where a whole number belongs"},
		{`{"id":"x","collective":"all_reduce","sizes_bytes":8}`, "sizes_bytes has a JSON number where a list belongs"},
		{`{"id":"x","collective":"all_reduce","anomalous":1}`, "anomalous has a JSON number where true or false belongs"},
		{`{"id":"x","collective":"all_reduce","env":[]}`, "env has a JSON array where an object belongs"},
		{`{"id":"x","collective":"all_reduce","time_us":["a"]}`, "where a number belongs"},
		{`{"collective":"all_reduce"}`, "a line without an id"},
		{`[1]`, "expected one JSON object a line"},
		{`{"id":`, "unexpected end of JSON input"},
	} {
		if _, _, err := Read("f", strings.NewReader("\n"+c.line)); err == nil ||
			!strings.HasPrefix(err.Error(), "f:2: ") ||
			!strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.line, err, c.want)
		}
	}
	sweeps, _, err := Read("f", strings.NewReader(`{"id":"x","collective":"juggle","sizes_bytes":[8]}`+"\n"+`{"id":"y","collective":"all_reduce","sizes_bytes":[-8],"time_us":[1,2]}`))
	if err != nil || !strings.Contains(sweeps[0].Problem, "juggle") || !strings.Contains(sweeps[1].Problem, "size -8") ||
		sweeps[1].Published.Surplus != 1 {
		t.Errorf("%v: %+v", err, sweeps)
	}
}

// On the cluster itself a sweep is predicted as from its description; one of other GPUs is refused.
func TestSyntheticOn(t *testing.T) {
	sweeps := readPoints(t, points(t, 0))
	machines := synth.Machines()
	for i := range machines {
		c, _, err := machines[i].Cluster()
		if err != nil {
			t.Fatal(err)
		}
		s := sweeps[2*i]
		x, err := On(s, c, nccl.Newest, nil)
		if err != nil {
			t.Fatal(err)
		}
		if v, ok := Release(s); !ok || v.String() != machines[i].Release || x.Predictor.Plan.Version != v {
			t.Errorf("%s: release %v, planned with %v", s.ID, v, x.Predictor.Plan.Version)
		}
		rows, err := x.Predict(sim.Fitted())
		if err != nil || Rate(rows).Worst > 1e-6 {
			t.Errorf("%s: %+v, %v", s.ID, Rate(rows), err)
		}
	}
	c, _, err := machines[0].Cluster()
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range map[int]string{4: "measured on \"A100-SXM4-80GB\"", 2: "nodes"} {
		if _, err := On(sweeps[i], c, nccl.Newest, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s on %s: %v, want %q", sweeps[i].ID, machines[0].Name, err, want)
		}
	}
	if x, err := Prepare(sweeps[0]); err != nil || len(x.Pick(func(i int) bool { return i%2 == 0 }).Ops) != 4 {
		t.Errorf("every other of seven points: %v", err)
	}
}

// Results that were kept become sweeps that can be predicted; what says nothing about NCCL is left.
func TestSyntheticKept(t *testing.T) {
	m := synth.Machines()[0]
	g := points(t, 0)[0]
	text, err := m.Table(&g)
	if err != nil {
		t.Fatal(err)
	}
	measured := func() result.Sweeps {
		out, err := nccltests.ReadOutput("kept.txt", strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		list, err := out.Sweeps()
		if err != nil || len(list) != 1 {
			t.Fatal(err)
		}
		return list
	}
	list := measured()
	kept, left, err := Kept(list, "")
	if err != nil || len(kept) != 1 || len(left) != 0 || len(kept[0].Points) != len(g.Sizes) || kept[0].Nodes != 2 {
		t.Fatalf("%d sweeps, left %v: %v", len(kept), left, err)
	}
	for i, p := range kept[0].Points {
		if p.In != nil || math.Abs(p.Out.Time.Mean.Micros()-g.Micros[i]) > 0.006 {
			t.Errorf("%d bytes: %+v", p.Size, p)
		}
	}
	list[0].Nodes, list[0].PerNode = 0, 0
	for layout, want := range map[string]string{
		"": "say which ranks took part with -l", "3x8": "16 ranks, and -l says 3x8", "x": "expected",
	} {
		if _, _, err := Kept(list, layout); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("-l %q: %v, want %q", layout, err, want)
		}
	}
	if kept, _, err = Kept(list, "2x8"); err != nil || kept[0].Nodes != 2 || kept[0].PerNode != 8 ||
		kept[0].LayoutFrom != "-l" {
		t.Errorf("-l 2x8: %v %+v", err, kept)
	}
	for want, spoil := range map[string]func(s *result.Sweep){
		"a prediction":           func(s *result.Sweep) { s.Source = result.Predicted },
		"on CPUs":                func(s *result.Sweep) { s.Transport = "tcp" },
		"wrong results":          func(s *result.Sweep) { n := int64(3); s.Points[0].Out.Wrong = &n },
		"compressed on the wire": func(s *result.Sweep) { s.Compress = "int8" },
	} {
		list := measured()
		spoil(list[0])
		if _, left, err := Kept(list, ""); err != nil || len(left) != 1 || !strings.Contains(left[0].Reason, want) ||
			left[0].Gradable {
			t.Errorf("left %v, want %q: %v", left, want, err)
		}
	}
}
