package workload_test

import (
	"strings"
	"testing"

	"busbar.dev/workload"
)

// FuzzParseSplit holds that whatever is read prints as what reads back, and that nothing panics.
func FuzzParseSplit(f *testing.F) {
	for _, s := range []string{
		"", "dp=8,tp=4,pp=2", "tp=2,cp=4,ep=8,vpp=2,zero=3,shard=8,sp=1", "shard=node", "tp=-1", "tp=99999999999999", "pp",
		"=,=", "zero=4",
	} {
		f.Add(s, 64)
	}
	f.Fuzz(func(t *testing.T, text string, ranks int) {
		s, err := workload.ParseSplit(text)
		if err != nil || ranks < 1 || ranks > 1<<20 {
			return
		}
		if s, err = s.Within(8); err != nil {
			return
		}
		if s, err = s.On(ranks); err != nil {
			return
		}
		again, err := workload.ParseSplit(s.String())
		if err != nil {
			t.Fatalf("%q prints as %q: %v", text, s, err)
		}
		if again, err = again.On(ranks); err != nil || again.String() != s.String() || again.Ranks() != ranks {
			t.Fatalf("%q prints as %q, which is %q: %v", text, s, again, err)
		}
	})
}

// A node's GPUs are divided among the groups that it holds whole.
func TestShardNode(t *testing.T) {
	for _, x := range []struct {
		text  string
		order workload.Order
		want  int
		err   string
	}{
		{"zero=3,shard=node", "", 8, ""},
		{"zero=1,tp=2,shard=node", "", 4, ""},
		{"zero=1,tp=2,pp=2,shard=node", workload.TensorPipelineData, 2, ""},
		{"zero=1,tp=3,shard=node", "", 0, "do not hold whole groups of 3"},
	} {
		s, err := workload.ParseSplit(x.text)
		if err != nil {
			t.Fatal(err)
		}
		s.Order = x.order
		if _, err := s.On(32); err == nil || !strings.Contains(err.Error(), "give shard a number") {
			t.Errorf("%s without nodes: %v", x.text, err)
		}
		s, err = s.Within(8)
		if x.err != "" {
			if err == nil || !strings.Contains(err.Error(), x.err) {
				t.Errorf("%s: %v; expected %q", x.text, err, x.err)
			}
			continue
		}
		if err != nil || s.Shard != x.want {
			t.Errorf("%s: shard=%d, %v; expected %d", x.text, s.Shard, err, x.want)
		}
	}
}

// A split that is printed is read as the same by every framework, whatever it chooses where nobody says.
func TestSplitIsReadBack(t *testing.T) {
	for _, want := range []workload.Split{
		{DP: 4},
		{DP: 4, TP: 2},
		{DP: 4, TP: 2, ZeRO: 1, SeqParallel: true},
		{DP: 8, TP: 2, ZeRO: 3, Shard: 4},
		{DP: 4, TP: 2, EP: 4, ETP: 2, ZeRO: 1},
		{DP: 4, TP: 2, EP: 4, ETP: 1, ZeRO: 1},
	} {
		text := want.String()
		said := map[string]bool{}
		for _, word := range strings.Split(text, ",") {
			key, _, _ := strings.Cut(word, "=")
			said[key] = true
		}
		for _, f := range workload.Frameworks() {
			got, err := workload.ParseSplit(text)
			if err != nil {
				t.Fatal(err)
			}
			f.Fill(&got, said)
			if got.String() != text || got.ExpertTensor() != want.ExpertTensor() {
				t.Errorf("%s: %s is read as %s", f.ID, text, got)
			}
		}
	}
}
