package health

import (
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
)

// alive gives n nodes heartbeats every 5 s for an hour up to now.
func alive(h *History, n int, now time.Time) {
	for i := range n {
		for k := range 100 {
			h.Beat(name(i), now.Add(time.Duration(k-100)*5*time.Second))
		}
	}
}

func TestUnreachable(t *testing.T) {
	h := New(0)
	alive(h, 8, at(0))
	if list := h.Findings(at(0)); len(list) > 0 {
		t.Fatalf("%v", list)
	}
	for k := range 20 {
		for i := range 7 {
			h.Beat(name(i), at(0).Add(time.Duration(k)*5*time.Second))
		}
	}
	now := at(0).Add(98 * time.Second)
	list := h.Findings(now)
	if len(list) != 1 || list[0].ID != "silent:node7" || list[0].Severity != finding.Error ||
		!list[0].Since.Equal(at(0).Add(-5*time.Second)) {
		t.Fatalf("%+v", list)
	}
	if bad := h.Unhealthy(now); !slices.Equal(bad, []string{"node7"}) {
		t.Errorf("bad: %v", bad)
	}
	// After it spoke again it is well; a report that comes late changes nothing.
	h.Beat("node7", now)
	h.Beat("node7", at(0).Add(-time.Hour))
	if list := h.Findings(now); len(list) > 0 {
		t.Errorf("%v", ids(list))
	}
	// All at once: the server's side.
	list = h.Findings(now.Add(10 * time.Minute))
	if len(list) != 1 || list[0].ID != "silent-fleet:" || len(list[0].Nodes) != 8 || len(Drain(list)) > 0 {
		t.Errorf("%+v", list)
	}
	// A node with gaps.
	for k := range 5 {
		h.Beat("node3", now.Add(time.Duration(k)*time.Minute))
	}
	for i := range 8 {
		for k := range 60 {
			if i != 3 {
				h.Beat(name(i), now.Add(time.Duration(k)*5*time.Second))
			}
		}
	}
	list = h.Findings(now.Add(4*time.Minute + 10*time.Second))
	if !slices.Contains(ids(list), "late-beats:node3") {
		t.Errorf("%v", ids(list))
	}
}

func TestLinks(t *testing.T) {
	for _, c := range []struct {
		name   string
		states string // one a minute; u up, d down
		want   []string
	}{
		{"up", "uuuuuu", nil},
		{"without a cable", "dddddd", nil},
		{"came up", "dduuuu", nil},
		{"fell once", "uuduuu", nil},
		{"down", "uuuddd", []string{"link-down:a/mlx5_0"}},
		{"flaps", "ududuu", []string{"flapping:a/mlx5_0"}},
		{"flaps and is down", "ududud", []string{"flapping:a/mlx5_0", "link-down:a/mlx5_0"}},
	} {
		h := New(0)
		for k, s := range c.states {
			h.Link("a", "mlx5_0", s == 'u', at(0).Add(time.Duration(k)*time.Minute))
		}
		if got := ids(h.Findings(at(0).Add(10 * time.Minute))); !slices.Equal(got, append([]string{}, c.want...)) {
			t.Errorf("%s: %v", c.name, got)
		}
		if got := h.Findings(at(0).Add(3 * time.Hour)); strings.HasSuffix(c.states, "u") && len(got) > 0 {
			t.Errorf("%s, hours later: %v", c.name, ids(got))
		}
	}
}

// TestFlood: a port that reports every second for a day stays within its bounds and keeps its
// falls.
func TestFlood(t *testing.T) {
	h := New(0)
	for k := range 20000 {
		h.Link("a", "mlx5_0", k%6000 != 5999, at(0).Add(time.Duration(k)*time.Second))
		h.Count("a", "mlx5_0", "symbol_error", uint64(k/10), at(0).Add(time.Duration(k)*time.Second))
	}
	p := h.node[0].ports["mlx5_0"]
	if len(p.falls) != 3 || len(p.counters["symbol_error"].list) > mostCounts {
		t.Errorf("%d falls are left of 3, %d counts", len(p.falls), len(p.counters["symbol_error"].list))
	}
	if r, _, _ := p.counters["symbol_error"].hourly(at(0).Add(20000 * time.Second)); r < 350 || r > 370 {
		t.Errorf("%.0f per hour, want 360", r)
	}
}

func TestCounters(t *testing.T) {
	// Eight nodes report every minute for an hour; node3's counter rises as given.
	for _, c := range []struct {
		name, counter string
		bad, others   float64 // per hour
		reset         bool
		want          string
		severity      finding.Severity
	}{
		{"symbols", "symbol_error", 300, 0, false, "errors:node3/mlx5_0", finding.Warn},
		{"many symbols", "symbol_error", 60000, 1, false, "errors:node3/mlx5_0", finding.Error},
		{"few symbols", "symbol_error", 5, 0, false, "", 0},
		{"symbols and a reboot", "symbol_error", 300, 0, true, "errors:node3/mlx5_0", finding.Warn},
		{"falls", "link_downed", 3, 0, false, "errors:node3/mlx5_0", finding.Warn},
		{"a fall", "link_downed", 1, 0, false, "", 0},
		{"ethernet", "rx_crc_errors_phy", 500, 0, false, "errors:node3/mlx5_0", finding.Warn},
		{"loss", "out_of_sequence", 50000, 10, false, "loss:node3/mlx5_0", finding.Warn},
		{"a little loss", "out_of_sequence", 100, 0, false, "", 0},
		{"loss everywhere", "out_of_sequence", 5000, 4000, false, "", 0},
		{"discards now and then", "rx_discards_phy", 300, 20, false, "", 0},
		{"pauses as ever", "rx_prio3_pause", 5e6, 4e6, false, "", 0},
		{"slow to receive", "tx_prio3_pause", 5e7, 1e5, false, "slow-receiver:node3/mlx5_0", finding.Warn},
		{"held", "rx_prio3_pause", 5e7, 1e5, false, "congestion:node3/mlx5_0", finding.Note},
		{
			"held for a fifth of the time", "rx_prio3_pause_duration", 720e6, 1e6, false, "congestion:node3/mlx5_0",
			finding.Note,
		},
		{"held, and a reboot", "rx_pause_ctrl_phy", 5e7, 1e5, true, "congestion:node3/mlx5_0", finding.Note},
		{"held a little", "rx_prio3_pause_duration", 1e6, 0, false, "", 0},
		{"a storm", "tx_pause_storm_error_events", 5, 0, false, "slow-receiver:node3/mlx5_0", finding.Warn},
		{"discards", "rx_discards_phy", 50000, 20, false, "loss:node3/mlx5_0", finding.Warn},
		{"no buffers", "rx_out_of_buffer", 50000, 20, false, "loss:node3/mlx5_0", finding.Warn},
		{"traffic", "rx_prio3_bytes", 5e12, 0, false, "", 0},
		{"corrected bits", "rx_err_lane_0_phy", 5e9, 0, false, "", 0},
		{"dropped by the kernel", "rx_dropped", 5000, 100, false, "", 0},
	} {
		h := New(0)
		for i := range 8 {
			rate := c.others
			if i == 3 {
				rate = c.bad
			}
			base := uint64(1000 * i) // what it had before says nothing
			for m := range 61 {
				v := base + uint64(rate*float64(m)/60)
				if c.reset && m > 30 {
					v = uint64(rate * float64(m-30) / 60)
				}
				h.Count(name(i), "mlx5_0", c.counter, v, at(0).Add(time.Duration(m)*time.Minute))
			}
		}
		list := h.Findings(at(0).Add(time.Hour))
		switch {
		case c.want == "" && len(list) > 0,
			c.want != "" && (len(list) != 1 || list[0].ID != c.want || list[0].Severity != c.severity):
			t.Errorf("%s: %+v", c.name, list)
		}
		if later := h.Findings(at(0).Add(3 * time.Hour)); len(later) > 0 {
			t.Errorf("%s, hours later: %v", c.name, ids(later))
		}
	}
}

// TestSilenceOfTheUnknown: nothing is said of what is usual where too little was heard to tell.
func TestUnreachableWithoutHeartbeats(t *testing.T) {
	h := New(35 * time.Second)
	h.Beat("node0", at(0))
	if list := h.Findings(at(0).Add(34 * time.Second)); len(list) > 0 {
		t.Errorf("%+v", list)
	}
	list := h.Findings(at(0).Add(40 * time.Second))
	if len(list) != 1 || list[0].Severity != finding.Warn ||
		list[0].Evidence[0].Text != "no heartbeat for 40s; allowed 35s" {
		t.Errorf("%+v", list)
	}
}
