package query

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
)

// TestFieldsOfErrors holds errors to the parameter that they are about, and to being the question's fault where no
// other time or place would help.
func TestFieldsOfErrors(t *testing.T) {
	files := Env{Files: fstest.MapFS{
		"empty.yaml": {Data: nil}, "bad.yaml": {Data: []byte("nodes:\n  - count: x\n    type: dgx-h100\n")},
		"typo.yaml": {Data: []byte("nodes:\n  - coutn: 2\n    type: dgx-h100\n")},
	}}
	on := func(q Predict) Predict {
		q.Cluster, q.Size = "dgx-h100:2", "1M"
		return q
	}
	job := func(j Job) Step {
		j.Cluster = "dgx-h100:2"
		if j.Model == "" {
			j.Model = "llama3-8b"
		}
		return Step{Job: j}
	}
	for _, c := range []struct {
		env      Env
		question interface{ err(*testing.T, Env) error }
		field    string
		want     string
	}{
		{Env{}, asked[Predict, PredictDoc]{Predict{}}, "cluster", "no cluster given"},
		{Env{}, asked[Predict, PredictDoc]{Predict{Cluster: "nope.yaml"}}, "cluster", "no such file"},
		{Env{}, asked[Predict, PredictDoc]{Predict{Cluster: "dgx-h1000:2"}}, "cluster", "no such file"},
		{Env{}, asked[Predict, PredictDoc]{Predict{Cluster: "dgx-h100:0"}}, "cluster", "expected a number of nodes"},
		{Env{}, asked[Predict, PredictDoc]{Predict{Cluster: "a\x00b"}}, "cluster", `"a\x00b": expected the name`},
		{Env{}, asked[Predict, PredictDoc]{Predict{Cluster: strings.Repeat("x", 1<<16)}}, "cluster", "at most 4096 bytes"},
		{files, asked[Predict, PredictDoc]{Predict{Cluster: "empty.yaml"}}, "cluster", "empty"},
		{files, asked[Predict, PredictDoc]{Predict{Cluster: "bad.yaml"}}, "cluster", "bad.yaml:2: nodes[0].count"},
		{files, asked[Predict, PredictDoc]{Predict{Cluster: "typo.yaml"}}, "cluster", "typo.yaml:2: nodes[0].coutn"},
		{Env{}, asked[Predict, PredictDoc]{on(Predict{Layout: "0x4"})}, "layout", "NODESxGPUS"},
		{Env{}, asked[Predict, PredictDoc]{on(Predict{Layout: "17x4"})}, "layout", "NAME:17"},
		{Env{}, asked[Predict, PredictDoc]{on(Predict{Compare: "1x4,2x"})}, "compare", "NODESxGPUS"},
		{Env{}, asked[Predict, PredictDoc]{on(Predict{Op: "broadcast", Root: 99})}, "root", "ranks are 0 to 15"},
		{Env{}, asked[Predict, PredictDoc]{on(Predict{Op: "broadcast", Root: -1})}, "root", "ranks are 0 to 15"},
		{Env{}, asked[Predict, PredictDoc]{on(Predict{Env: []string{"NCCL_ALGO=Quick"}})}, "env", "NCCL_ALGO=Quick"},
		{Env{}, asked[Step, StepDoc]{Step{}}, "cluster", "no cluster"},
		{Env{}, asked[Step, StepDoc]{job(Job{Model: "lama"})}, "model", "lama"},
		{Env{}, asked[Step, StepDoc]{job(Job{Model: "a\x00b"})}, "model", `"a\x00b"`},
		{Env{}, asked[Step, StepDoc]{job(Job{Parallel: "tp=3"})}, "parallel", "layout 2x8"},
		{Env{}, asked[Step, StepDoc]{job(Job{Global: 7, Parallel: "zero=3"})}, "global-batch", "a global batch of 7"},
		{Env{}, asked[Doctor, DoctorDoc]{Doctor{}}, "path", "nothing to read"},
		{Env{}, asked[Hang, HangDoc]{Hang{}}, "path", "nothing to read"},
		{Env{}, asked[Explain, ExplainDoc]{Explain{}}, "log", "no log given"},
	} {
		err := c.question.err(t, c.env)
		var f *FieldError
		if !errors.As(err, &f) || f.Field != c.field || Cannot(err) || !strings.Contains(err.Error(), c.want) ||
			len(err.Error()) > 4000 {
			t.Errorf("%.200v: %.300v, want an error about %s with %q", c.question, err, c.field, c.want)
		}
	}
}

// TestClusterValues holds errors about clusters that a program made to words of the program.
func TestClusterValues(t *testing.T) {
	node, err := hardware.Node("dgx-h100")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		value *cluster.Cluster
		want  string
	}{
		{nil, `Env.Clusters["x"]: nil`},
		{&cluster.Cluster{Hosts: []cluster.Host{{Name: "a", Type: 3}}}, `host "a": type 3 of 0`},
		{
			&cluster.Cluster{Types: []*cluster.NodeType{{Name: "t"}}, Hosts: []cluster.Host{{Name: "a"}}},
			"type 0 has no devices",
		},
		{&cluster.Cluster{Types: []*cluster.NodeType{node}, Hosts: []cluster.Host{{Name: "a"}, {Name: "b"}}}, ""},
	} {
		_, err := Predict{Cluster: "x", Size: "1M"}.Run(t.Context(), Env{Clusters: map[string]*cluster.Cluster{"x": c.value}})
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%+v: %v, want %q", c.value, err, c.want)
		}
	}
}

// TestTakenAs holds a framework that is taken for another to a note, and a size that is a value to none.
func TestTakenAs(t *testing.T) {
	d, err := Step{Job: Job{Cluster: "dgx-h100:2", Model: "llama3-8b", Framework: "jax"}}.Run(t.Context(), Env{})
	if err != nil || !strings.Contains(strings.Join(d.Notes, "\n"), "framework jax is taken as maxtext") {
		t.Errorf("%v, %+v", err, d)
	}
	p, err := Predict{Cluster: "dgx-h100:2", Size: "3000"}.Run(t.Context(), Env{})
	if err != nil || len(p.Notes) > 0 {
		t.Errorf("%v, %+v", err, p)
	}
}

// asked is a question whose error is looked at.
type asked[Q runs[D], D any] struct{ q Q }

type runs[D any] interface {
	Run(ctx context.Context, env Env) (*D, error)
}

func (a asked[Q, D]) err(t *testing.T, env Env) error {
	_, err := a.q.Run(t.Context(), env)
	return err
}
