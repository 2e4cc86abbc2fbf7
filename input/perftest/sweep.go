package perftest

import (
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Transport is that of the sweeps of perftest: a verb between two hosts, by neither NCCL nor our engine.
const Transport = "rdma"

// Sweeps are tables as measured messages between two hosts. A rate becomes the time that a message takes at it. The
// test, the device and the number of queue pairs are settings: what differs in them is not compared.
func Sweeps(name string, list []Table) result.Sweeps {
	var all result.Sweeps
	for i := range list {
		t := &list[i]
		s := &result.Sweep{
			Source: result.Measured, Op: coll.SendRecv, Dtype: coll.Int8.String(), Ranks: 2, Nodes: 2, PerNode: 1,
			Transport: Transport, Tool: Format,
			Env: map[string]string{"test": t.Test}, File: name, Line: t.Line, ID: fmt.Sprintf("%s:%d", name, t.Line),
		}
		if t.Device != "" {
			s.Env["device"] = t.Device
		}
		if t.QPs > 1 {
			s.Env["qps"] = fmt.Sprint(t.QPs)
		}
		for k := range t.Rows {
			r := &t.Rows[k]
			x := &result.Timing{Runs: r.Iters}
			if x.Time.Mean = r.Typical; t.Latency {
				x.Time.Median, x.Time.P99 = r.Typical, r.Tail
			} else if r.Rate > 0 {
				x.Time.Mean = unit.Seconds(float64(r.Size) / float64(r.Rate))
			}
			if x.Time.Mean > 0 {
				s.Points = append(s.Points, result.Point{
					Size: r.Size, Algo: strings.ReplaceAll(strings.ToLower(t.Test), " ", "_"), Out: x, Line: r.Line,
				})
			}
		}
		if len(s.Points) > 0 {
			all = append(all, s)
		}
	}
	return all
}
