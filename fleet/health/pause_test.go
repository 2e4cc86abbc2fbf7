package health

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
)

// paused reads a counter of eight ports every ten minutes for some hours; per is what port i rises by
// in an hour.
func paused(h *History, name string, from, hours int, per func(i, hour int) float64) time.Time {
	now := began
	for i := range 8 {
		v := 0.0
		for k := range hours * 6 {
			hour := k / 6
			v += per(i, from+hour) / 6
			now = began.Add(time.Duration(from)*time.Hour + time.Duration(k+1)*10*time.Minute)
			h.Count(Count{fmt.Sprintf("node%d", i), "eth0", name, uint64(v), now})
		}
	}
	return now
}

// TestHabit: a port that always was held more than others is as ever; it is told when that becomes
// more.
func TestHabit(t *testing.T) {
	for _, c := range []struct {
		name string
		last float64 // of node3 in the last hour; 4e7 in those before
		want string
	}{
		{"as ever", 4e7, ""},
		{"twice", 8e7, ""},
		{"five times", 2e8, "slow-receiver:node3/eth0"},
		{"less", 1e5, ""},
	} {
		h := New(Options{})
		now := paused(h, "tx_prio3_pause", 0, 12, func(i, hour int) float64 {
			switch {
			case i == 3 && hour == 11:
				return c.last
			case i == 3:
				return 4e7
			}
			return 1e5
		})
		got := h.Findings(now)
		if text := strings.Join(ids(got), " "); text != c.want {
			t.Errorf("%s: %s, want %q", c.name, text, c.want)
		}
		for _, f := range got {
			if f.Severity != finding.Warn || f.Confidence != 0.8 || !strings.Contains(f.Text, "this host is slow to receive") ||
				!strings.Contains(f.Evidence[0].Text, "itself before 4") || len(Drain(got)) > 0 {
				t.Errorf("%s: %+v", c.name, f)
			}
		}
	}
}

// TestHeldAll: when most ports are held more than ever it is one note about the network, and evidence of a
// fleet that became slower.
func TestHeldAll(t *testing.T) {
	f := calm(8, 0, 9)
	f.run(40)
	f.fault = everybody(0.6)
	f.run(8)
	now := paused(f.h, "rx_prio3_pause_duration", 36, 12, func(i, hour int) float64 {
		if hour >= 46 {
			return 400e6
		}
		return 5e6
	})
	got := f.h.Findings(now)
	if !slices.Equal(ids(got), []string{"slow-fleet:", "congestion:"}) {
		t.Fatalf("%v", ids(got))
	}
	if c := got[1]; c.Severity != finding.Note || len(c.Nodes) != 8 ||
		!strings.Contains(c.Text, "8 ports are told to pause") || len(Drain(got)) > 0 {
		t.Errorf("%+v", c)
	}
	if e := got[0].Evidence; !strings.Contains(e[len(e)-1].Text, "told to pause") {
		t.Errorf("%q", e)
	}
	// A few hours later it is what is usual.
	now = paused(f.h, "rx_prio3_pause_duration", 48, 4, func(int, int) float64 { return 400e6 })
	if got := f.h.Findings(now); !slices.Equal(ids(got), []string{"slow-fleet:"}) {
		t.Errorf("%v", ids(got))
	}
}

// TestSlowTakerEvidence: a node that is slow in receiving and sends pause frames has both in one finding.
func TestSlowTakerEvidence(t *testing.T) {
	f := shared(8, 0, 10)
	f.run(15)
	f.fault = in(3, 0.5)
	f.run(3)
	for i := range 8 {
		for m := range 10 {
			v := uint64(0)
			if i == 3 {
				v = uint64(m) * 1e6
			}
			f.h.Count(Count{name(i), "eth0", "tx_prio3_pause", v, at(f.sweeps).Add(time.Duration(m) * time.Minute)})
		}
	}
	got := f.h.Findings(at(f.sweeps).Add(10 * time.Minute))
	if !slices.Equal(ids(got), []string{"slow-in:node3", "slow-receiver:node3/eth0"}) {
		t.Fatalf("%v", ids(got))
	}
	if e := fmt.Sprint(got[0].Evidence); !strings.Contains(e, "port eth0: tx_prio3_pause rises") {
		t.Errorf("%s", e)
	}
}
