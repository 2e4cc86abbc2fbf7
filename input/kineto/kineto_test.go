package kineto

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"strings"
	"testing"

	"busbar.dev/result/trace"
	"busbar.dev/unit"
)

const example = "../../docs/examples/trace/rank0.json"

func TestRead(t *testing.T) {
	data, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{"plain": data} {
		if !Match(text[:min(len(text), 1<<16)]) {
			t.Errorf("%s is not recognised", name)
		}
		tr, err := Read(name, bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		s, groups := tr.Summarize()
		if tr.Rank != 0 || tr.World != 2 || tr.GPU != "NVIDIA H100 80GB HBM3" || tr.NCCL != "2.26.2" || s.Steps != 10 ||
			len(groups) != 1 {
			t.Fatalf("%+v, %+v", tr, s)
		}
		g := &groups[0]
		if g.Bytes != 25*unit.MiB || g.Size != 2 || g.Count != 3 || len(g.Ranks) != 2 ||
			tr.Events[len(tr.Events)-1].Kind != trace.Copy {
			t.Errorf("%+v", g)
		}
		// 10 ms of kernels; from the first bucket at 7 ms to 14.12 ms collectives run, 3 ms of it beside kernels.
		for what, v := range map[string][2]float64{
			"compute": {float64(s.Compute), 10e-3}, "exposed": {float64(s.Exposed), 4.12e-3},
			"communication": {float64(s.Comm), 7.12e-3},
		} {
			if math.Abs(v[0]-v[1]) > 1e-7 {
				t.Errorf("%s: %g s, expected %g s", what, v[0], v[1])
			}
		}
	}
}

func TestMatch(t *testing.T) {
	for _, text := range []string{"", "{", `{"nodes":[]}`, `[{"ph":"X"}]`, "\x1f\x8b", `{"displayTimeUnit":"ms","otherData":{"title":"busbar"}}`} {
		if Match([]byte(text)) {
			t.Errorf("%q was taken for a trace", text)
		}
	}
}

func TestBadTraces(t *testing.T) {
	for text, want := range map[string]string{
		`[]`:                               "expected a JSON object",
		`{"traceEvents":{}}`:               "expected an array",
		`{"traceEvents":[]}`:               "no kernels",
		`{"traceEvents":[{"ph":"X"},{"ph"`: "unexpected EOF",
		`{"traceEvents":[{"ph":"X","cat":"kernel","name":"k","ts":"yesterday","dur":1}]}`: "no kernels",
	} {
		if _, err := Read("x", strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, expected %q", text, err, want)
		}
	}
}

func TestNanoseconds(t *testing.T) {
	for text, want := range map[string]int64{
		"4458677009853.422": 4458677009853422, "1711964646123456.7": 1711964646123456700, "12": 12000, "1.5e3": 1500000,
		"2e3": 2000000, "0.0019": 1,
	} {
		if got, ok := nanoseconds(json.RawMessage(text)); !ok || got != want {
			t.Errorf("%s: %d, %v", text, got, ok)
		}
	}
}

func FuzzRead(f *testing.F) {
	data, err := os.ReadFile(example)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte(`{"traceEvents":[{"ph":"X","cat":"kernel","ts":-1,"dur":1e300,"args":{"Group size":-5,"In msg nelems":9223372036854775807,"dtype":"Double"}}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		tr, err := Read("x", bytes.NewReader(data))
		if err != nil {
			return
		}
		s, _ := tr.Summarize()
		if s.Step < 0 || s.Idle < -1e-6 || s.Exposed < 0 || s.Compute < 0 {
			t.Fatalf("%+v", s)
		}
	})
}
