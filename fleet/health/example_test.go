package health_test

import (
	"encoding/json"
	"fmt"
	"time"

	"busbar.dev/fleet/health"
	"busbar.dev/unit"
)

// A server folds what agents report into a History and asks it what is wrong.
func ExampleHistory() {
	h := health.New(0)
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	var now time.Time
	for sweep := range 10 {
		now = start.Add(time.Duration(sweep) * 5 * time.Minute)
		for a := range 6 {
			for b := range 6 {
				rate := 12 * unit.GBps
				if sweep >= 8 && a == 4 {
					rate /= 2
				}
				h.Add(health.Sample{
					Sweep: fmt.Sprint(sweep), Time: now, From: fmt.Sprint("node", a), To: fmt.Sprint("node", b), Rate: rate,
				})
			}
		}
	}
	for _, f := range h.Findings(now) {
		fmt.Println(f.Severity, f.ID, f.Text)
	}
	fmt.Println("drain", health.Drain(h.Findings(now)))
	line, _ := json.Marshal(health.Observation{Sample: &health.Sample{
		Sweep: "1", Time: start, From: "a", To: "b", Rate: 12 * unit.GBps, Latency: unit.Micros(20),
	}})
	fmt.Println(string(line))
	// Output:
	// error slow-out:node4 node4 is slow in sending, to all others: 50% of peers' bandwidth, since 2026-03-01 12:40:00Z.
	// drain [node4]
	// {"sample":{"sweep":"1","time":"2026-03-01T12:00:00Z","from":"a","to":"b","rate_GBps":12,"latency_s":0.00002}}
}
