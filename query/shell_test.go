package query

import (
	"strings"
	"testing"

	"busbar.dev/workload"
)

func TestShellLine(t *testing.T) {
	for word, want := range map[string]string{
		"dgx-h100:4": "dgx-h100:4", "tp=8,pp=2": "tp=8,pp=2", "gpu[01-08]": "'gpu[01-08]'", "it's": `'it'\''s'`, "": "''",
		"a b": "'a b'", "$(x)": "'$(x)'", "`x`": "'`x`'",
		"x\x1b[31m'\n": `$'x\x1b[31m\'\n'`,
	} {
		if got := ShellLine([]string{"busbar", word}); got != "busbar "+want {
			t.Errorf("%q: %s, expected %s", word, got, want)
		}
	}
}

// The help of a flag names every framework that the flag takes.
func TestFrameworkHelp(t *testing.T) {
	for _, question := range []any{&Step{}, &Plan{}} {
		for _, p := range Params(question) {
			if p.Name != "framework" {
				continue
			}
			for _, name := range workload.FrameworkNames() {
				if !strings.Contains(p.Help, name) {
					t.Errorf("%T: the help of --framework does not name %s", question, name)
				}
			}
		}
	}
}

// A zero or what is no number is no way to ask for the usual.
func TestPlanBounds(t *testing.T) {
	for flag, text := range map[string]string{
		"gpus": "0", "seq": "0", "micro-batch": "0", "max-nodes": "0", "global-batch": "0",
	} {
		q := &Plan{}
		for _, p := range Params(q) {
			if p.Name == flag && p.Set(q, text) == nil {
				t.Errorf("--%s %s is taken", flag, text)
			}
		}
	}
	q := &Step{}
	for _, p := range Params(q) {
		for _, text := range []string{"0", "NaN"} {
			if p.Name == "loader" && p.Set(q, text) == nil {
				t.Errorf("--loader %s is taken", text)
			}
		}
	}
	for _, text := range []string{"25", "0", "x"} {
		if _, err := parseBucket(text); err == nil {
			t.Errorf("--bucket %s is taken", text)
		}
	}
}

// Replicas shard what zero says, over ranks that there are.
func TestShard(t *testing.T) {
	for text, want := range map[string]string{
		"zero=0,shard=node": "shard without zero", "zero=1,shard=1000": "16 ranks hold the same parameters",
		"zero=3,shard=8": "",
	} {
		_, err := Step{Job: Job{Cluster: "dgx-h100:2", Model: "gpt2", Parallel: Parallel(text)}}.Run(t.Context(), Env{})
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; expected %q", text, err, want)
		}
	}
}

// The printed command prices the very plan: with the sizes of buckets that it has where the framework's own are others.
func TestPlanCommandReproduces(t *testing.T) {
	if testing.Short() {
		t.Skip("searches a plan")
	}
	d, err := Plan{Cluster: "dgx-h100:2", Model: "llama3-8b", Framework: "megatron", Global: 256, Top: 3}.Run(t.Context(),
		Env{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range d.Plans {
		q, words := &Step{}, strings.Fields(p.Command)[2:]
		for i := 0; i+1 < len(words); i += 2 {
			for _, param := range Params(q) {
				if words[i] == "--"+param.Name || words[i] == "-"+param.Short {
					if err := param.Set(q, words[i+1]); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
		x, err := q.Run(t.Context(), Env{})
		if err != nil {
			t.Fatalf("%s: %v", p.Command, err)
		}
		if x.Rows[0].Step != p.Step {
			t.Errorf("%s: %v; the plan has %v", p.Command, x.Rows[0].Step, p.Step)
		}
	}
}
