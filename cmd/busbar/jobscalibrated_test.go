package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/doctor/rates"
	"busbar.dev/finding"
	"busbar.dev/input/profile"
	"busbar.dev/internal/test/ringfile"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// TestJobsCalibrated goes all the way from measurements of a site to the verdict on a job: map writes the cluster's
// file, calibrate the calibration beside it, and jobs holds a job against that: three quarters of the measured rate are
// slow, though within the bar of a prediction that is slower than the site.
func TestJobsCalibrated(t *testing.T) {
	dir := t.TempDir()
	site := filepath.Join(dir, "site.yaml")
	busbar := func(words ...string) string {
		t.Helper()
		code, out, errs := busbarRun(t, words...)
		if code != exitDone {
			t.Fatalf("busbar %s: exit code %d\n%s%s", strings.Join(words, " "), code, out, errs)
		}
		return out
	}
	busbar("map", "dgx-h100:2", "-o", site, "-q")
	took := measuredPair(t, busbar, site)
	const size = 64 * unit.MiB
	slow := ringsOf(t, size, 11*took[size]/8)
	verdict := func(rings string, want rates.Verdict, against rates.Standard) {
		t.Helper()
		var doc struct {
			Findings []finding.Finding
			Jobs     []struct{ Rows []rates.Row }
		}
		if err := json.Unmarshal([]byte(busbar("jobs", rings, "-c", site, "--json", "--fail-on", "never")),
			&doc); err != nil {
			t.Fatal(err)
		}
		row := doc.Jobs[0].Rows[0]
		if row.Verdict != want || row.Against != against ||
			len(doc.Findings) != map[rates.Verdict]int{rates.SlowNetwork: 1}[want] {
			t.Errorf("%v of %+v: %q by the %q, expected %q by the %q; %+v", row.Transfer, row.Expected, row.Verdict, row.Against,
				want, against, doc.Findings)
		}
	}
	verdict(slow, rates.AsExpected, rates.ByPrediction)
	busbar("calibrate", "-c", site, "-o", filepath.Join(dir, "site.calibration.yaml"), "-q",
		filepath.Join(dir, "measured.jsonl"))
	verdict(slow, rates.SlowNetwork, rates.ByCalibrated)
	verdict(ringsOf(t, size, took[size]), rates.AsExpected, rates.ByCalibrated)
}

// measuredPair keeps what a pair of a site's nodes gives in measured.jsonl beside the site's file: a tenth longer than
// predicted.
func measuredPair(t *testing.T, busbar func(...string) string, site string) map[unit.Bytes]time.Duration {
	t.Helper()
	var doc struct {
		Rows []struct {
			Size unit.Bytes `json:"size_bytes"`
			Time unit.Time  `json:"time_s"`
		}
	}
	if err := json.Unmarshal([]byte(busbar("predict", "-c", site, "-l", "2x1", "-b", "8M", "-e", "512M", "-f", "2", "-d",
		"bfloat16", "--algo", "ring", "--proto", "simple", "--json")), &doc); err != nil {
		t.Fatal(err)
	}
	s := &result.Sweep{
		Source: result.Measured, Op: coll.AllReduce, Redop: "sum", Dtype: "bfloat16", Ranks: 2, Nodes: 2, PerNode: 1,
		Transport: result.NCCL, Tool: "nccl-tests 2.17.1", Library: "2.28.9", When: time.Unix(1_800_000_000, 0),
	}
	took := map[unit.Bytes]time.Duration{}
	for _, r := range doc.Rows {
		shorter := r.Time * 9 / 10
		took[r.Size] = shorter.Span().Duration()
		s.Points = append(s.Points, result.Point{
			Size: r.Size, Out: &result.Timing{Time: result.Times{Mean: shorter}},
		})
	}
	f, err := os.Create(filepath.Join(filepath.Dir(site), "measured.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := result.Write(f, s); err != nil {
		t.Fatal(err)
	}
	return took
}

// ringsOf are the rings of a job of two ranks on two nodes whose transfers take so long.
func ringsOf(t *testing.T, size unit.Bytes, transfer time.Duration) string {
	t.Helper()
	dir := t.TempDir()
	for rank := range 2 {
		r := &profile.Ring{
			PID: 100 + rank, Host: fmt.Sprintf("node%d", rank), Job: "7", Rank: rank, World: 2,
			Created: time.Unix(1_800_000_000, 0), Comms: []profile.Comm{{Hash: 5, Rank: rank, Ranks: 2, Nodes: 2}},
		}
		for i := range 64 {
			r.Ops = append(r.Ops, profile.Op{
				Function: "AllReduce", Kind: coll.AllReduce, Sequence: uint64(i), Type: "Bfloat16", Count: uint64(size / 2),
				Bytes: size, Algo: "ring", Proto: "simple", Channels: 8,
				Launched: r.Created.Add(time.Duration(i) * 20 * time.Millisecond), Started: true, Ended: true, GPU: true,
				Took: transfer + time.Duration((i+rank)%3)*time.Microsecond,
			})
		}
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("busbar-%d-x.ring", r.PID)), ringfile.Encode(r),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
