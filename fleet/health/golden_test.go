package health

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite testdata")

// TestWords holds the words of findings of every sort.
func TestTexts(t *testing.T) {
	var b strings.Builder
	for _, c := range []struct {
		name    string
		n, leaf int
		rails   []string
		fault   func(a, b, r, k int) float64
		more    func(f *fleet)
	}{
		{"host", 8, 4, nil, host(3, 0.5), nil},
		{"sender, and its port has errors", 8, 4, nil, out(3, 0.5), func(f *fleet) {
			for m := range 60 {
				for i := range 8 {
					v := uint64(0)
					if i == 3 {
						v = uint64(40 * m)
					}
					f.h.Count(name(i), "mlx5_0", "symbol_error", v, at(16).Add(time.Duration(m)*time.Minute))
				}
			}
		}},
		{"receiver", 8, 0, nil, in(3, 0.6), nil},
		{"pair", 8, 0, nil, couple(1, 6, 0.4, true), nil},
		{"direction", 8, 0, nil, couple(1, 6, 0.4, false), nil},
		{"leaf", 16, 4, nil, leaf(1, 4, 0.5), nil},
		{
			"one uplink of a leaf", 16, 4, nil,
			func(a, b, r, k int) float64 { return pick((a/4 == 2) != (b/4 == 2) && (a*7+b*13)%4 == 0, 0.5) }, nil,
		},
		{"two leaves", 8, 4, nil, leaf(1, 4, 0.5), nil},
		{
			"NIC", 8, 0,
			[]string{"mlx5_0", "mlx5_1"},
			func(a, b, r, k int) float64 { return pick((a == 3 || b == 3) && r == 1, 0.5) }, nil,
		},
		{"the fleet as a whole", 8, 4, nil, nil, func(f *fleet) {
			f.every, f.setup = time.Hour, "4 MiB messages, 10 times"
			f.run(30)
			f.fault = everybody(0.7)
			f.run(5)
		}},
		{"all that crosses leaves", 12, 4, nil, nil, func(f *fleet) {
			f.every = time.Hour
			f.run(30)
			f.fault = across(4, 0.6)
			f.run(5)
		}},
		{"cut off", 8, 0, nil, nil, func(f *fleet) {
			f.fails = func(a, b, k int) bool { return a == 2 || b == 2 }
			f.run(3)
		}},
		{"ports and nodes", 4, 0, nil, nil, func(f *fleet) {
			now := at(f.sweeps)
			for k := range 6 {
				f.h.Link("node1", "eth0", k%2 == 1, now.Add(time.Duration(k-8)*time.Minute))
			}
			f.h.Link("node2", "eth0", true, now.Add(-3*time.Minute))
			f.h.Link("node2", "eth0", false, now.Add(-2*time.Minute))
			for k := range 60 {
				for i := range 4 {
					if i != 3 || k < 10 {
						f.h.Beat(name(i), now.Add(time.Duration(5*(k-60))*time.Second))
					}
				}
				f.h.Count("node0", "eth0", "out_of_sequence", uint64(1e5*k), now.Add(time.Duration(k-60)*time.Minute))
				f.h.Count("node1", "eth0", "out_of_sequence", 7, now.Add(time.Duration(k-60)*time.Minute))
			}
		}},
	} {
		f := shared(c.n, c.leaf, 7)
		f.rails = c.rails
		f.busy, f.upset = 0, 0
		f.run(15)
		f.fault = c.fault
		f.run(6)
		if c.more != nil {
			c.more(f)
		}
		fmt.Fprintf(&b, "# %s\n", c.name)
		for _, x := range f.h.Findings(at(f.sweeps)) {
			fmt.Fprintf(&b, "%s %s %s nodes=%s where=%s factor=%.2f confidence=%.2f\n  %s\n  %s\n", x.Severity, x.ID, x.Figure,
				strings.Join(x.Nodes, ","), x.Where, x.Factor, x.Confidence, x.Text, x.Fix)
			for _, e := range x.Evidence {
				fmt.Fprintf(&b, "  - %s\n", e)
			}
		}
	}
	file := filepath.Join("testdata", "words.txt")
	if *update {
		if err := os.MkdirAll("testdata", 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(b.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := b.String(); got != string(want) {
		t.Errorf("words changed (go test ./health -update):\n%s", got)
	}
}
