package nccltuner

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"busbar.dev/internal/corpus"
)

// Every sample of the corpus. Its index gives the shape of a row only, so the
// rows are counted here as a person counts them in the file.
func TestCorpus(t *testing.T) {
	want := map[string]struct {
		rules       int
		first, last string
		channels    int // rules with -1 channels, each a warning
	}{
		"tuner/nccl_tuner.conf":         {9, "allreduce,0,65536,tree,simple,2,1,-1,-1,1", "reduce,0,4294967295,tree,simple,-1,-1,-1", 4},
		"tuner/tuner-example-README.md": {5, "allreduce,0,65536,tree,simple,2,1,-1,-1,1", "broadcast,32769,4294967295,ring,simple,2,-1,-1,1,0", 2},
	}
	for _, e := range corpus.Index(t, "NCCL tuner-plugin CSV") {
		t.Run(e.File, func(t *testing.T) {
			data := corpus.Open(t, e.File)
			if !Match(data) || MatchTraining(data) {
				t.Errorf("Match %v, MatchTraining %v", Match(data), MatchTraining(data))
			}
			c, err := Read(e.File, strings.NewReader(string(data)))
			if err != nil {
				t.Fatal(err)
			}
			w, ok := want[e.File]
			if !ok {
				t.Fatal("a sample that this test does not know")
			}
			n := len(c.Rules)
			if n != w.rules || c.Rules[0].String() != w.first || c.Rules[n-1].String() != w.last || len(c.Warnings) != w.channels {
				t.Errorf("%d rules from %s to %s, warnings %v", n, &c.Rules[0], &c.Rules[n-1], c.Warnings)
			}
			// Every row of the file, and nothing else, is a rule, in its own words.
			var rows []string
			for line := range strings.Lines(string(data)) {
				if f := strings.Split(strings.TrimSpace(line), ","); len(f) >= 8 && slices.Contains(collectives, f[0]) {
					rows = append(rows, strings.TrimSpace(line))
				}
			}
			for i := range c.Rules {
				if i >= len(rows) || rows[i] != c.Rules[i].String() {
					t.Errorf("rule %d is %s", i, &c.Rules[i])
				}
			}
		})
	}
	for _, e := range corpus.Index(t, "tuner training CSV") {
		data := corpus.Open(t, e.File)
		if !MatchTraining(data) || Match(data) {
			t.Errorf("%s: MatchTraining %v, Match %v", e.File, MatchTraining(data), Match(data))
		}
		s, err := ReadTraining(e.File, strings.NewReader(string(data)))
		if err != nil || len(s) != 23 {
			t.Fatalf("%s: %v, %d samples", e.File, err, len(s))
		}
		last := s[22]
		if last.Collective != "allreduce" || last.Size != 1<<20 || last.Algorithm != "nvls" || last.Protocol != "simple" || last.Channels != 16 ||
			last.Nodes != 2 || last.Ranks != 16 || last.PipeOps != Any || last.RegBuff != Any || last.Cost != 0.42 || last.Bandwidth != 512.6 || last.Latency.Micros() != 42.3 || last.Line != 24 {
			t.Errorf("last sample %+v", last)
		}
	}
}

func TestWrite(t *testing.T) {
	rules := []Rule{
		{Collective: "allreduce", Max: 65536, Algorithm: "tree", Protocol: "ll", Channels: 4, Nodes: 1, Ranks: 8, PipeOps: Any, RegBuff: Any},
		{Collective: "allgather", Min: 1, Max: 2, Algorithm: "nvls_tree", Protocol: "simple", Channels: 16, Nodes: Any, Ranks: Any, PipeOps: 3, RegBuff: 1, Fields: 10},
	}
	var b strings.Builder
	if err := Write(&b, rules); err != nil {
		t.Fatal(err)
	}
	c, err := Read("x", strings.NewReader(b.String()))
	if err != nil || len(c.Rules) != 2 || len(c.Warnings) != 0 {
		t.Fatalf("%v: %+v", err, c)
	}
	for i, r := range c.Rules {
		if r.String() != rules[i].String() {
			t.Errorf("wrote %s, read %s", &rules[i], &r)
		}
	}
	for _, bad := range []Rule{
		{Collective: "AllReduce", Algorithm: "ring", Protocol: "ll"},
		{Collective: "allreduce", Algorithm: "RING", Protocol: "ll"},
		{Collective: "allreduce", Algorithm: "ring", Protocol: "ll", Min: 2, Max: 1},
		{Collective: "allreduce", Algorithm: "ring", Protocol: "ll", RegBuff: 2},
	} {
		if err := Write(&b, []Rule{bad}); err == nil {
			t.Errorf("wrote %s", &bad)
		}
	}
}

func TestBadInput(t *testing.T) {
	for _, tc := range []struct{ name, in, wantErr, wantWarn string }{
		{"nothing", "", "no rule", ""},
		{"comments", "# allreduce,0,1,ring,ll,1,1,1\n", "no rule", ""},
		{"seven fields", "allreduce,0,1,ring,ll,1,1\n", "no rule", ""},
		{"eleven fields", "allreduce,0,1,ring,ll,1,1,1,1,1,1\n", "no rule", ""},
		{"unknown algorithm", "allreduce,0,1,Ring,ll,1,1,1\n", "", "takes any other word for ring"},
		{"unknown protocol", "allreduce,0,1,ring,LL,1,1,1\n", "", "takes any other word for simple"},
		{"unknown collective", "AllReduce,0,1,ring,ll,1,1,1\nallreduce,0,1,ring,ll,1,1,1\n", "", "takes any other word for allreduce"},
		{"empty field", "allreduce,0,1,ring,ll,,1,1\nallreduce,0,1,ring,ll,1,1,1\n", "", "field 6 is empty"},
		{"turned range", "allreduce,5,1,ring,ll,1,1,1\nallreduce,0,1,ring,ll,1,1,1\n", "", "is no range"},
		{"bad number", "allreduce,0,1,ring,ll,x,1,1\nallreduce,0,1,ring,ll,1,1,1\n", "", "field 6 is \"x\""},
		{"too small", "allreduce,0,1,ring,ll,-7,1,1\nallreduce,0,1,ring,ll,1,1,1\n", "", "field 6 is \"-7\""},
		{"default channels", " allreduce , 0 , 1 , ring , ll , -1 , 1 , 1 \n", "", "one channel"},
		{"long line", "allreduce,0,1,ring,ll,1,1,1" + strings.Repeat(" ", 300) + "\n", "", "the plugin reads 255"},
	} {
		c, err := Read("f", strings.NewReader(tc.in))
		if tc.wantErr != "" {
			if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
				t.Errorf("%s: error %v, want %q", tc.name, err, tc.wantErr)
			}
			continue
		}
		if err != nil || !strings.Contains(fmt.Sprint(c.Warnings), tc.wantWarn) || len(c.Rules) != 1 {
			t.Errorf("%s: error %v, %+v, want %q", tc.name, err, c, tc.wantWarn)
		}
	}
	for name, in := range map[string]string{
		"nothing":   "",
		"no header": "allreduce,1024,tree,simple\n",
		"no size":   "collective,size_bytes,algorithm,protocol\nallreduce,x,tree,simple\n",
		"negative":  "collective,size_bytes,algorithm,protocol,latency_us\nallreduce,1,tree,simple,-4\n",
	} {
		if s, err := ReadTraining("f", strings.NewReader(in)); err == nil {
			t.Errorf("%s: %+v", name, s)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("# c\nallreduce,0,65536,tree,simple,2,1,-1,-1,1\nbroadcast,0,1,ring,ll,4,1,8\n")
	f.Fuzz(func(t *testing.T, s string) {
		Match([]byte(s))
		c, err := Read("f", strings.NewReader(s))
		if err != nil {
			return
		}
		for i := range c.Rules {
			again, err := parseRule(splitRule(c.Rules[i].String()))
			if err != nil || again.String() != c.Rules[i].String() {
				t.Errorf("%s reads back as %s (%v)", &c.Rules[i], &again, err)
			}
		}
	})
}

func FuzzReadTraining(f *testing.F) {
	f.Add("collective,size_bytes,algorithm,protocol,latency_us\nallreduce,1,tree,simple,4\n")
	if os.Getenv("BUSBAR_SHARED") != "" {
		f.Add(string(corpus.Open(f, "tuner/sample_performance_data.csv")))
	}
	f.Fuzz(func(t *testing.T, s string) {
		MatchTraining([]byte(s))
		ReadTraining("f", strings.NewReader(s))
	})
}
