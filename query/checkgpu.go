package query

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"busbar.dev/calibrate"
	"busbar.dev/cluster"
	"busbar.dev/engine/device"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/internal/stats"
	"busbar.dev/unit"
	"busbar.dev/workload"
)

// checkGPU is what a GPU did in a check.
type checkGPU struct {
	Host   string  `json:"host,omitempty"`
	Index  int     `json:"gpu"`
	Name   string  `json:"name"`
	TFLOPS float64 `json:"tflops,omitempty"`
	GBps   float64 `json:"GBps,omitempty"`
	MHz    int     `json:"sm_mhz,omitempty"`
	Why    string  `json:"throttled,omitempty"`
}

// The product and the copy of a check, and how long the product runs before it counts: locked clocks, cooling and power limits show
// under load only.
const (
	checkSide   = 8192
	checkCopy   = 256 * unit.MiB
	checkHeat   = 0.5e6 // µs
	checkTimed  = 0.2e6
	checkStream = 50
)

// measureGPUs times a product and a copy on the GPUs of a team, all at once. What one refuses is a note.
func measureGPUs(ctx context.Context, team device.Team, states []device.State) (list []checkGPU, notes []string) {
	if busy := busyGPUs(states); busy != "" {
		return nil, []string{"products and memory were not measured: " + busy}
	}
	product := device.Request{Do: device.Product, M: checkSide, N: checkSide, K: checkSide, Dtype: "bfloat16", Warm: 1, Iters: 2}
	answers, err := team.All(ctx, product, nil)
	if err == nil {
		us := max(answers[0].Product.Micros, 1)
		product.Warm, product.Iters, product.Check = 1+int(checkHeat/us), 1+int(checkTimed/us), true
		answers, err = team.All(ctx, product, nil)
	}
	if err != nil {
		notes = append(notes, fmt.Sprintf("products were not measured: %v", err))
		answers = make([]device.Answer, len(team))
	}
	copies, err := team.All(ctx, device.Request{Do: device.Memory, Bytes: int64(checkCopy), Warm: 5, Iters: checkStream}, nil)
	if err != nil {
		notes = append(notes, fmt.Sprintf("memory was not measured: %v", err))
		copies = make([]device.Answer, len(team))
	}
	next := map[string]int{}
	for i, w := range team {
		g := checkGPU{Host: w.Hello.Host, Index: next[w.Hello.Host], Name: w.Device.Name}
		next[w.Hello.Host]++
		if p := answers[i].Product; p != nil {
			g.TFLOPS, g.MHz, g.Why = p.TFLOPS, p.MHz, strings.Join(p.Why, ", ")
		}
		for _, r := range copies[i].Rates {
			if r.What == "copy" {
				g.GBps = r.GBps
			}
		}
		list = append(list, g)
	}
	return list, notes
}

// busyShare is the utilization, in percent, from which somebody else is computing on a GPU.
const busyShare = 20

// busyGPUs says who is on the GPUs already: what is measured beside others says nothing. Ours are processes that do not count.
func busyGPUs(states []device.State, ours ...int) string {
	for _, s := range states {
		if s.Utilization == nil || *s.Utilization <= busyShare {
			continue
		}
		var who []string
		mine := 0
		for _, u := range s.Users {
			if slices.Contains(ours, u.PID) {
				mine++
			} else {
				who = append(who, strings.TrimSpace(fmt.Sprintf("%s %d", u.Name, u.PID)))
			}
		}
		if mine > 0 && len(who) == 0 {
			continue
		}
		text := fmt.Sprintf("GPU %d is busy (%d%%)", s.Index, *s.Utilization)
		if len(who) > 0 {
			text += fmt.Sprintf(", by process %s", strings.Join(who[:min(len(who), 4)], ", "))
		}
		return text
	}
	return ""
}

// busyTeam says who else is on the GPUs of a team while it does nothing; "" where nobody is, or nobody can say. The driver's utilization is of the
// last second, in which another command of ours may have ended.
func busyTeam(ctx context.Context, team device.Team) string {
	first, pids, uuids := map[string]*device.Worker{}, map[string][]int{}, map[string][]string{} // by host
	var hosts []string
	for _, w := range team {
		h := w.Hello.Host
		if first[h] == nil {
			first[h] = w
			hosts = append(hosts, h)
		}
		pids[h], uuids[h] = append(pids[h], w.Hello.PID), append(uuids[h], w.Device.UUID)
	}
	look := func() string {
		for _, h := range hosts {
			a, err := first[h].Ask(ctx, device.Request{Do: device.Health})
			if err != nil { // no NVML, or a driver without it
				continue
			}
			own := slices.DeleteFunc(slices.Clone(a.Health), func(s device.State) bool { return !slices.Contains(uuids[h], s.UUID) })
			if busy := busyGPUs(own, pids[h]...); busy != "" {
				return h + ": " + busy
			}
		}
		return ""
	}
	if look() == "" {
		return ""
	}
	select {
	case <-ctx.Done():
	case <-time.After(busyAgain):
	}
	return look()
}

// busyAgain is how long after a GPU was seen busy it is looked at again.
const busyAgain = 1500 * time.Millisecond

// expectation is what GPUs are held against: the prediction by the cluster's figures, and how far a healthy one may be off.
type expectation struct {
	cluster *cluster.Cluster // nil: none was given
	oneNode bool             // the job that nodes are checked for has one, and sends nothing over RDMA
}

// Bars are two standard deviations of what is known of a figure that nobody measured here; of one that a calibration measured, what GPUs
// of one model differ by.
const calibratedBar = 1.12

// of is the predicted product rate (TFLOPS) and memory rate (GB/s) of a GPU with their bars; false where it is in no catalogue.
func (x expectation) of(name string) (tflops, gbps, bar, memBar float64, from string, ok bool) {
	m, found := hardware.GPUByName(name)
	if !found {
		return 0, 0, 0, 0, "", false
	}
	c := x.cluster
	if c == nil {
		c = &cluster.Cluster{}
	}
	g, err := gpuOn(c, m)
	if err != nil || m.Peak[cluster.BF16] <= 0 {
		return 0, 0, 0, 0, "", false
	}
	flops := 2 * math.Pow(checkSide, 3)
	t := g.Time(&workload.Task{Kind: workload.Product, M: checkSide, N: checkSide, K: checkSide, Count: 1, Flops: flops, Starts: 1}, workload.BF16)
	s := g.Time(&workload.Task{Kind: workload.Stream, Bytes: unit.Volume(2 * checkCopy), Starts: 1}, workload.BF16)
	bar, memBar, from = calibrate.KernelBar(true), calibrate.KernelBar(false), "the prediction"
	if c.Calibration != nil && slices.ContainsFunc(c.Calibration.Figures, func(f cluster.Calibrated) bool { return strings.HasPrefix(f.Name, cluster.StepFigure) }) {
		bar, memBar, from = calibratedBar, calibratedBar, "the calibrated prediction"
	}
	return flops / float64(t) / 1e12, 2 * float64(checkCopy) / float64(s) / 1e9, bar, memBar, from, true
}

// slowGPUs are the findings about GPUs that do less than predicted, beyond the error bar, or than others of their model do.
func (x expectation) slowGPUs(list []checkGPU) []finding.Finding {
	var found []finding.Finding
	add := func(g checkGPU, what, unit string, has, want, bar float64, from string) bool {
		if has <= 0 || has >= want/bar {
			return false
		}
		why := ""
		if g.MHz > 0 {
			why = fmt.Sprintf(" at %d MHz", g.MHz)
		}
		if g.Why != "" {
			why += " (" + g.Why + ")"
		}
		f := finding.Finding{
			ID: "gpu-slow-" + what, Severity: finding.Warn, Confidence: 1, Where: fmt.Sprintf("%s/gpu%d", g.Host, g.Index), Nodes: []string{g.Host}, Factor: has / want,
			Text: fmt.Sprintf("GPU %d of %s does %.0f %s in %s%s; %s says %.0f, and less than %.0f is beyond its error bar", g.Index, g.Host, has, unit, what, why, from, want, want/bar),
			Fix:  "nvidia-smi -q -d CLOCK,POWER,PERFORMANCE shows locked clocks, limits and throttling; nvidia-smi -rgc frees clocks.",
		}
		if has < want/bar/bar {
			f.Severity = finding.Error
		}
		found = append(found, f)
		return true
	}
	for _, g := range list {
		tflops, gbps, bar, memBar, from, ok := x.of(g.Name)
		slow := ok && add(g, "products", "TFLOPS", g.TFLOPS, tflops, bar, from)
		thin := ok && add(g, "memory", "GB/s", g.GBps, gbps, memBar, from)
		if !slow {
			mid, bar := peers(list, g.Name, func(g checkGPU) float64 { return g.TFLOPS })
			add(g, "products", "TFLOPS", g.TFLOPS, mid, bar, "the median of its peers")
		}
		if !thin {
			mid, bar := peers(list, g.Name, func(g checkGPU) float64 { return g.GBps })
			add(g, "memory", "GB/s", g.GBps, mid, bar, "the median of its peers")
		}
	}
	return found
}

// peers is the median of GPUs of one model, and how far one may be below it: five of their own deviations, and a tenth at least. Fewer than
// four say nothing.
func peers(list []checkGPU, name string, of func(checkGPU) float64) (mid, bar float64) {
	var all []float64
	for _, g := range list {
		if v := of(g); g.Name == name && v > 0 {
			all = append(all, v)
		}
	}
	if len(all) < 4 {
		return 0, 1
	}
	mid = stats.Median(all)
	off := make([]float64, len(all))
	for i, v := range all {
		off[i] = math.Abs(math.Log(v / mid))
	}
	return mid, math.Exp(max(math.Log(1/0.9), 5*1.48*stats.Median(off)))
}

// heldAgainst says what nodes were held against.
func (x expectation) heldAgainst(measured int) string {
	words := "each GPU's own limits, and the median of all pairs"
	if measured == 0 {
		return words
	}
	m := "the model's prediction of products and memory with its error bar"
	if x.cluster != nil && x.cluster.Calibration != nil {
		m = "the calibrated prediction of products and memory with its error bar"
	}
	return m + ", each GPU's own limits, and the median of all pairs"
}
