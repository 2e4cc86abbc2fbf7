package hub

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/doctor/rates"
	"busbar.dev/fleet"
	"busbar.dev/hardware"
	"busbar.dev/input/profile"
	"busbar.dev/unit"
)

// sent is what a node's agent sends of one of a job's ranks: eight calls each beat.
func sent(t *testing.T, rank, beat int, wait time.Duration) []byte {
	t.Helper()
	began := time.Unix(1_800_000_000, 0)
	r := &profile.Ring{
		PID: 10 + rank, Host: fmt.Sprintf("node%d", rank), Job: "7", Rank: rank, World: 3,
		Comms: []profile.Comm{{Hash: 1, Rank: rank, Ranks: 3, Nodes: 3}},
	}
	for i := range 8 {
		n := beat*8 + i
		r.Ops = append(r.Ops, profile.Op{
			Function: "AllReduce", Kind: coll.AllReduce, Sequence: uint64(n), Type: "Float32", Count: 1 << 20,
			Bytes: 4 * unit.MiB, Algo: "ring", Proto: "simple",
			Launched: began.Add(time.Duration(n) * time.Second), Started: true, Ended: true, Took: time.Millisecond + wait,
		})
	}
	w := rates.NewWindow(64)
	w.AddRing(r, time.Time{})
	data, err := w.Done().Pack()
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func judged(t *testing.T, h *Hub, now time.Time) *JobsReply {
	t.Helper()
	if err := h.judgeJobs(t.Context(), now); err != nil {
		t.Fatal(err)
	}
	return h.jobs.last.Load()
}

// TestJobs joins what nodes send of one job: who is late, findings, series and metrics.
func TestJobs(t *testing.T) {
	now := time.Now()
	h := New(Config{})
	for beat := range 6 {
		for rank := range 3 {
			wait := 100 * time.Millisecond
			if rank == 1 {
				wait = 0
			}
			h.jobs.take(fleet.Name(fmt.Sprintf("node%d", rank)), sent(t, rank, beat, wait), now)
		}
		judged(t, h, now)
	}
	h.jobs.take("node9", []byte("no window"), now)
	r := judged(t, h, now)
	if len(r.Jobs) != 1 || len(r.Jobs[0].Ranks) != 3 || r.Jobs[0].Rows[0].Count != 48 || r.Jobs[0].Rows[0].Seen != 3 ||
		r.Jobs[0].Rows[0].Compared != 48 {
		t.Fatalf("%+v", r)
	}
	if l := r.Jobs[0].Late; l == nil || l.Ranks[0] != 1 || l.Host != "node1" {
		t.Fatalf("%+v", l)
	}
	list := h.view.notices.findings()
	if len(list) != 1 || list[0].ID != "late-rank:node1/rank1" || list[0].Nodes[0] != "node1" || list[0].Since.IsZero() {
		t.Errorf("%+v", list)
	}
	var text strings.Builder
	for _, m := range jobMetrics(r) {
		if err := m.write(&text, false); err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{
		`busbar_collective_transfer_seconds{slurm_job_id="7",comm_name="world",comm="1",n_nodes="3",nranks="3",collective="all_reduce",message_size="4194304",algo_proto=`,
		`busbar_job_late_ratio{slurm_job_id="7",rank="1",node="node1"}`,
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %s in\n%s", want, text.String())
		}
	}
	now = now.Add(2 * time.Minute)
	if r := judged(t, h, now); len(r.Jobs) != 0 || len(r.Findings) != 0 || len(h.jobs.windows) != 0 {
		t.Errorf("a job that ended stays: %+v", r)
	}
}

func uncalibrated(c *cluster.Cluster) *cluster.Cluster {
	out := *c
	out.Calibration = nil
	return &out
}

// TestJobsExpected sets what predict says of the fleet's own topology beside a job: a transfer far beyond the error bar
// is the network's, a late rank's is not.
func TestJobsExpected(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Hosts {
		c.Hosts[i].Name = fmt.Sprintf("node%d", i)
	}
	now := time.Now()
	h := New(Config{Network: c, Now: func() time.Time { return now }})
	for beat := range 6 {
		for rank := range 3 {
			h.jobs.take(fleet.Name(fmt.Sprintf("node%d", rank)), sent(t, rank, beat, 50*time.Millisecond), now)
		}
		judged(t, h, now)
	}
	r := judged(t, h, now)
	row := &r.Jobs[0].Rows[0]
	if row.Expected == nil || row.Verdict != rates.SlowNetwork || r.Predicted != "fleet" {
		t.Fatalf("%+v on %q (%s)", row, r.Predicted, r.Unpredicted)
	}
	if list := h.view.notices.findings(); len(list) != 1 || list[0].Kind != "slow-collective" {
		t.Errorf("%+v", list)
	}
	var text strings.Builder
	for _, m := range jobMetrics(r) {
		if err := m.write(&text, false); err != nil {
			t.Fatal(err)
		}
	}
	if !strings.Contains(text.String(), "busbar_collective_expected_ratio{") {
		t.Error(text.String())
	}
	// Inside the wide bar of a cluster that nobody measured, and outside the bar of one that was.
	high := row.Expected.High
	c.Calibration = &cluster.Calibration{
		Points: 9,
		Residuals: []cluster.Residual{{
			Op: "all_reduce", Class: "multi-node-infiniband", Layout: "3x1", From: unit.MiB, To: 16 * unit.MiB, Error: 0.1,
			Points: []cluster.ResidualPoint{{Size: unit.MiB, Factor: 1}, {Size: 16 * unit.MiB, Factor: 1}},
		}},
	}
	took := time.Duration((0.5*high.Seconds() + 0.5*row.Expected.Time.Seconds()) * 1e9)
	for _, x := range []struct {
		network *cluster.Cluster
		want    rates.Verdict
		against rates.Standard
	}{{uncalibrated(c), rates.AsExpected, rates.ByPrediction}, {c, rates.SlowNetwork, rates.ByCalibrated}} {
		h := New(Config{Network: x.network, Now: func() time.Time { return now }})
		for beat := range 6 {
			for rank := range 3 {
				h.jobs.take(fleet.Name(fmt.Sprintf("node%d", rank)), sent(t, rank, beat, took-time.Millisecond), now)
			}
			judged(t, h, now)
		}
		r := judged(t, h, now)
		row := &r.Jobs[0].Rows[0]
		if row.Verdict != x.want || row.Against != x.against || row.Expected.Calibrated != (x.against == rates.ByCalibrated) {
			t.Errorf("%s against %q, %v of %+v", row.Verdict, row.Against, row.Transfer, row.Expected)
		}
		if list := h.view.notices.findings(); len(list) != map[rates.Verdict]int{rates.SlowNetwork: 1}[x.want] ||
			len(list) > 0 && !strings.Contains(list[0].Text, "expected by the calibrated prediction") {
			t.Errorf("%+v", list)
		}
	}
}
