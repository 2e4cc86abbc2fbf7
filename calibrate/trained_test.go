package calibrate

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"busbar.dev/hardware"
	"busbar.dev/nccl"
	"busbar.dev/step"
)

// modelledSteps is what the script prints on a GPU that has other figures than the built-in ones.
func modelledSteps(t *testing.T, set map[string]float64) string {
	t.Helper()
	f := step.Default()
	for i := range f {
		if v, ok := set[step.Name(i)]; ok {
			f[i] = v
		}
	}
	m, _ := hardware.GPUByName("h200")
	g, err := step.NewGPU(m, f)
	if err != nil {
		t.Fatal(err)
	}
	c, err := hardware.Preset("h200", 1)
	if err != nil {
		t.Fatal(err)
	}
	l, err := nccl.Block(c, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for _, x := range []stepLine{
		{Family: "llama", Layers: 8, Hidden: 2048, Heads: 32, KVHeads: 8, FFN: 5632, Vocab: 32000, Batch: 4, Seq: 2048},
		{Family: "llama", Layers: 4, Hidden: 4096, Heads: 32, KVHeads: 32, FFN: 11008, Vocab: 32000, Batch: 2, Seq: 2048},
		{Family: "llama", Layers: 16, Hidden: 1024, Heads: 16, KVHeads: 4, FFN: 2816, Vocab: 32000, Batch: 1, Seq: 512},
		{Family: "gpt2", Layers: 8, Hidden: 1536, Heads: 12, KVHeads: 12, FFN: 6144, Vocab: 50304, Batch: 8, Seq: 1024},
		{Family: "gpt2", Layers: 16, Hidden: 1024, Heads: 16, KVHeads: 16, FFN: 4096, Vocab: 50304, Batch: 1, Seq: 512},
	} {
		x.Step, x.Products = 1, 1
		s, err := x.measured()
		if err != nil {
			t.Fatal(err)
		}
		p, err := step.Prepare(s.job, step.NewFabric(c, l, s.job.Split, nccl.Newest)).Parts(g)
		if err != nil {
			t.Fatal(err)
		}
		x.Products, x.Forward, x.Backward, x.Streams, x.Update = float64(p.Products)*1e6, float64(p.Forward)*1e6,
			float64(p.Backward)*1e6, float64(p.Streams)*1e6, float64(p.Update)*1e6
		x.Step = x.Products + x.Forward + x.Backward + x.Streams + x.Update + float64(p.Idle)*1e6
		line, _ := json.Marshal(x)
		fmt.Fprintf(&b, "a warning of a library\n%s\n", line)
	}
	return b.String() + `{"software":"PyTorch 2"}` + "\n"
}

// Steps of a GPU whose figures are others give these figures back, and steps that were left out are predicted by them.
func TestTrained(t *testing.T) {
	set := map[string]float64{"hopper.ceiling": 0.82, "eager_start": 20, "eager_between": 1.15, "eager_pieces": 1.8}
	m, _ := hardware.GPUByName("h200")
	d, err := Trained(m, []byte(modelledSteps(t, set)), step.Default())
	if err != nil {
		t.Fatal(err)
	}
	if d.Before < 0.05 || d.After > 0.03 || d.LeftOut > 0.06 || len(d.Steps) != 5 || len(d.Moved) == 0 ||
		d.Software != "PyTorch 2" {
		t.Errorf("%+v", d)
	}
	for _, f := range d.Moved {
		if want := set[strings.TrimPrefix(f.Name, "step.")]; want > 0 && math.Abs(f.Value/want-1) > 0.12 {
			t.Errorf("%s is %g; expected about %g", f.Name, f.Value, want)
		}
	}
	for name, x := range map[string]struct{ out, want string }{
		"cut short": {strings.TrimSuffix(modelledSteps(t, nil), `{"software":"PyTorch 2"}`+"\n"), "did not come to its end"},
		"too few":   {`{"software":"PyTorch 2"}`, "expected at least 3"},
		"no time":   {`{"family":"llama","layers":1,"hidden":8,"heads":1,"kv_heads":1,"ffn":8,"vocab":8,"batch":1,"seq":8,"step_us":0}`, "expected times above 0"},
	} {
		if _, err := Trained(m, []byte(x.out), step.Default()); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// What the script prints may be anything.
func FuzzReadSteps(f *testing.F) {
	f.Add([]byte(`{"family":"gpt2","layers":2,"hidden":64,"heads":2,"kv_heads":2,"ffn":256,"vocab":128,"batch":1,"seq":16,"step_us":9,"products_us":5,"streams_us":3}` + "\n" + `{"software":"x"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		_, list, err := readSteps(data)
		for _, s := range list {
			if err == nil && (!(s.Took > 0) || s.parts.Idle < 0) {
				t.Errorf("%+v", s)
			}
		}
	})
}
