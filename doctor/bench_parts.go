package doctor

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/doctor/cause"
	"busbar.dev/finding"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

const (
	userGuide = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/"
	trouble   = userGuide + "troubleshooting.html"
	envGuide  = userGuide + "env.html"
	perfGuide = "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"
)

func (s *Curve) wrongValues() *finding.Finding {
	wrong := s.wrong()
	if wrong == 0 {
		return nil
	}
	return &finding.Finding{
		ID: "wrong-values", Severity: finding.Error, Confidence: stated("wrong-values"), Title: fmt.Sprintf("%d wrong values", wrong), Reference: trouble,
		Cause: "Results of the collective are not what they must be: a protocol that is not safe here (LL128), a degraded link, or faulty memory.",
		Fix:   "Repeat with NCCL_PROTO=Simple, then host by host; nvidia-smi -q -d ECC; nvidia-smi nvlink --errorcounters.",
	}
}

// stated is how often a line that states a cause was right.
func stated(id string) float64 {
	m, err := model()
	if err != nil {
		return 0
	}
	return math.Round(100*m.Record(id, cause.States)) / 100
}

// off says by how much a part is off, in words.
func off(p *stretchOf) string {
	return fmt.Sprintf("%.1f times as long as predicted (the model is off by up to %.2f there)", p.ratio, p.margin)
}

// peak finds a curve whose end is too low, and reads the height it stops at.
func (s *Curve) peak(parts map[string]*stretchOf) *finding.Finding {
	large := parts["large"]
	got, want, _ := s.best()
	if !large.slow() && !s.farBelowLine(large, got) {
		return nil
	}
	f := &finding.Finding{
		ID: "bench-peak", Severity: finding.Warn, Confidence: s.likely(large.ratio, large.margin, false), Reference: perfGuide,
		Title:    fmt.Sprintf("The peak is too low: %.3g GB/s of bus bandwidth where about %.3g GB/s are expected", got, want),
		Cost:     fmt.Sprintf("large messages take %.1f times as long", large.ratio),
		Evidence: quotesOf(large.points),
	}
	if s.farBelowLine(large, got) {
		f.Confidence = max(f.Confidence, likely(float64(s.NICs)*s.NICRate.GBps()/got, ownMargin))
	}
	f.Cause, f.Fix = s.height(got, want)
	if parts["small"].slow() {
		f.Cause += fmt.Sprintf(" Small messages are slow too (%.1f times), so the whole path is another than expected.", parts["small"].ratio)
	}
	return f
}

// farBelowLine reports a peak that is little beside the rate of the NICs, whatever
// the model's error bar: RDMA reaches more than half of the line on every machine
// that was published.
func (s *Curve) farBelowLine(large *stretchOf, got float64) bool {
	rdma := strings.HasSuffix(s.Class, "-roce") || strings.HasSuffix(s.Class, "-infiniband")
	return rdma && s.NICRate > 0 && got < 0.35*float64(s.NICs)*s.NICRate.GBps() && large.ratio > 1.8
}

// height reads a peak: which known mechanism gives just that much.
func (s *Curve) height(got, want float64) (cause, fix string) {
	nic := s.NICRate.GBps()
	kind, _, _ := strings.Cut(s.Class, "-")
	if s.Sweep.Nodes > 1 {
		kind = "nodes"
	}
	var list []mechanism
	for _, m := range csvtable.Must[mechanism]("mechanisms.csv", mechanismTable) {
		switch {
		case m.OneNIC && (s.NICs < 2 || nic > 0.9*want), m.Class != kind && (m.Class != "" || kind == "nodes" || kind == "pcie"):
			continue
		case m.OneNIC:
			m.low, m.high = 0.6*nic, nic
		default:
			m.low, m.high = m.LeastShare*want, min(want, m.MostShare*want)
			if m.MostGBps > 0 {
				m.low, m.high = min(m.LeastGBps, m.high/2), min(m.high, m.MostGBps)
			}
		}
		list = append(list, m)
	}
	m, share := likeliest(list, got)
	if m == nil {
		return "The limit is unknown.", "NCCL_DEBUG=INFO; busbar doctor NCCL.log."
	}
	text := strings.NewReplacer("{percent}", fmt.Sprintf("%.0f%%", 100*got/want), "{nic}", fmt.Sprintf("%.3g", nic), "{nics}", strconv.Itoa(s.NICs)).Replace(m.Cause)
	return fmt.Sprintf("%s This is the likeliest of the known causes (%.0f%%).", text, 100*share), m.Fix
}

// middle finds a curve that is only low between its ends.
func (s *Curve) middle(parts map[string]*stretchOf) *finding.Finding {
	mid := parts["middle"]
	if !mid.slow() {
		return nil
	}
	f := &finding.Finding{
		ID: "bench-middle", Severity: finding.Warn, Confidence: s.likely(mid.ratio, mid.margin, s.Unsure != ""), Reference: envGuide, Evidence: quotesOf(mid.points),
		Title: "Messages of 64 KiB to 16 MiB are slow: " + off(mid),
		Cause: "The ends of the curve are right and its middle is not: a protocol or algorithm taken too early or too late (LL128 not available, NCCL_ALGO or NCCL_PROTO set), few channels, or messages through another GPU's NIC (PXN).",
		Fix:   "unset NCCL_ALGO, NCCL_PROTO, NCCL_BUFFSIZE, NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS; NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=TUNING shows what is taken at which size; NCCL_PXN_DISABLE=1 to compare.",
	}
	if parts["large"].slow() {
		f.Cause = "Bandwidth is too low from here on."
	} else if parts["large"].ratio == 0 && parts["small"].slow() {
		f.Cause = "The sweep ends here, so its peak is not known; small messages are slow too: the whole path is another one than expected (sockets, host memory)."
	}
	return f
}

// latency finds a curve that begins too high in time.
func (s *Curve) latency(parts map[string]*stretchOf) *finding.Finding {
	small := parts["small"]
	if !small.slow() {
		return nil
	}
	f := &finding.Finding{
		ID: "bench-latency", Severity: finding.Warn, Confidence: s.likely(small.ratio, small.margin, s.Unsure != ""), Reference: perfGuide, Evidence: quotesOf(small.points),
		Title: "Small messages are slow: " + off(small), Cost: "every collective below 64 KiB takes so much longer; training with many small tensors feels it",
		Cause: "Bandwidth is as it should be and latency is not: processors that save power or are busy (proxy threads share cores), no GDRCopy, a management interface for the bootstrap's connections, another protocol than LL, or many channels for few bytes.",
		Fix:   "cpupower frequency-set -g performance; leave cores to NCCL's proxy threads (no 1-core cgroups); unset NCCL_PROTO and NCCL_MIN_NCHANNELS.",
	}
	if s.Sweep.Nodes > 1 {
		f.Cause += " Between nodes also: sockets instead of RDMA, adaptive routing, a far switch."
	}
	if parts["large"].slow() {
		f.ExplainedBy = "bench-peak"
		f.Cause = "Latency is high as well as bandwidth low: the whole path is another one than expected."
	}
	return f
}

// dip finds sizes that take far longer than larger ones, outside of parts that are slow as a whole.
func (s *Curve) dip(parts map[string]*stretchOf) *finding.Finding {
	var at []*CurvePoint
	worst := 1.0
	for i := range s.Points {
		p := &s.Points[i]
		if parts[predict.SizeClass(p.Size)].slow() {
			continue
		}
		for k := i + 1; k < len(s.Points) && k <= i+2; k++ {
			q := &s.Points[k]
			if r := float64(p.Time) / float64(q.Time); q.Size > p.Size && p.Size >= 4*unit.KiB && r > 1.5 {
				if len(at) == 0 || at[len(at)-1] != p {
					at = append(at, p)
				}
				worst = math.Max(worst, r)
			}
		}
	}
	if len(at) == 0 {
		return nil
	}
	f := &finding.Finding{
		ID: "bench-dip", Severity: finding.Note, Confidence: s.likely(worst, marginOf(at[0]), false), Reference: envGuide, Evidence: quotesOf(at),
		Title: fmt.Sprintf("A dip: %v takes %.1f times as long as a larger size", at[0].Size, worst),
		Cause: "One size falls out of the curve: a protocol or algorithm that changes there, a disturbance while it ran, or an adapter that drops packets at that burst length.",
		Fix:   "Repeat that size (-b and -e equal, more iterations); if it stays: NCCL_DEBUG_SUBSYS=TUNING, and counters of the switch and NIC while it runs.",
	}
	if worst > 3 {
		f.Severity = finding.Warn
	}
	return f
}

// falls finds a curve that comes down again at its end.
func (s *Curve) falls() *finding.Finding {
	got, _, at := s.best()
	if at == nil || len(s.Points) < 4 {
		return nil
	}
	last := &s.Points[len(s.Points)-1]
	if last.BusBW > 0.7*got || last.Size <= 16*unit.MiB || last.Expected > 0 && s.busBW(last.Size, last.Expected) < 0.8*s.busBW(at.Size, at.Expected) {
		return nil
	}
	f := &finding.Finding{
		ID: "bench-falls", Severity: finding.Note, Confidence: s.likely(got/last.BusBW, marginOf(last), false), Reference: perfGuide, Evidence: quotesOf([]*CurvePoint{at, last}),
		Title: fmt.Sprintf("The curve comes down: %.3g GB/s at %v, %.3g at %v", got, at.Size, last.BusBW, last.Size),
		Cause: "The largest messages are slower than smaller ones: congestion that long bursts build up (PFC, ECN, buffers of switches), memory that has to be registered or paged, or GPUs that slow down as they heat.",
		Fix:   "Counters of pause frames and ECN marks before and after; nvidia-smi -q -d PERFORMANCE while it runs; more iterations at that size.",
	}
	if last.BusBW < 0.5*got {
		f.Severity = finding.Warn
	}
	return f
}

// places compares in-place with out-of-place times of large messages.
func (s *Curve) places() *finding.Finding {
	var ratios []float64
	for i := range s.Points {
		if p := &s.Points[i]; p.InPlace > 0 && p.Time > 0 && p.Size > unit.MiB {
			ratios = append(ratios, float64(p.Time)/float64(p.InPlace))
		}
	}
	r := stats.Nearest(ratios, 0.5)
	if len(ratios) < 3 || r > 0.75 && r < 1.33 {
		return nil
	}
	return &finding.Finding{
		ID: "bench-in-place", Severity: finding.Note, Confidence: repeats(max(r, 1/r)), Reference: perfGuide, Evidence: []finding.Quote{},
		Title: fmt.Sprintf("Out of place takes %.2f times as long as in place", r),
		Cause: "Both move the same bytes between GPUs; the copy into another buffer costs only where the GPU's memory is the limit, or where one of the buffers is registered and the other is not.",
		Fix:   "None where it is expected (one GPU, NVLS with registered buffers: -R 1); else repeat.",
	}
}

// fast is a note about a curve that is better than predicted.
func (s *Curve) fast(parts map[string]*stretchOf) *finding.Finding {
	large := parts["large"]
	if large.ratio == 0 || large.ratio*large.margin*slack > 1 {
		return nil
	}
	if !s.Guessed && truth.TooFast(1/large.ratio, large.margin) {
		return &finding.Finding{
			ID: "bench-impossible", Severity: finding.Warn, Confidence: 0.95, Reference: perfGuide, Evidence: quotesOf(large.points),
			Title: fmt.Sprintf("The figures are impossible for this cluster: large messages take %.2g of the predicted time", large.ratio),
			Cause: fmt.Sprintf("Not even in-switch reduction explains it: %.4g GB/s of bus bandwidth. The times or bandwidths are in another unit (ms for µs, Gb for GB), the file was changed, or it is of another cluster than the one described.", large.points[len(large.points)-1].BusBW),
			Fix:   "Look at the units and at -c, or repeat the run. Do not calibrate with this file.",
		}
	}
	return &finding.Finding{
		ID: "bench-fast", Severity: finding.Note, Confidence: s.likely(1/large.ratio, large.margin, false), Reference: perfGuide, Evidence: quotesOf(large.points),
		Title: fmt.Sprintf("Faster than predicted: large messages take %.2f of the predicted time", large.ratio),
		Cause: "The cluster is better than its description (more NICs, in-network reduction, NVLink between nodes), or the model is too careful here.",
		Fix:   "None; busbar calibrate -c CLUSTER RESULT makes later predictions and verdicts sharper.",
	}
}

// outside is a note about sizes beyond their error bars where nothing else is said of the curve: it is never in order by silence.
func (s *Curve) outside() *finding.Finding {
	var out []*CurvePoint
	judged, worst, sum := 0, 0.0, 0.0
	for i := range s.Points {
		p := &s.Points[i]
		if p.Ratio() > 0 {
			judged++
			sum += s.likely(p.Ratio(), p.Margin, false)
		}
		if p.Out() {
			out = append(out, p)
			worst = max(worst, p.Ratio())
		}
	}
	if len(out) == 0 {
		return nil
	}
	var ratios []float64
	for _, p := range out {
		ratios = append(ratios, p.Ratio())
	}
	return &finding.Finding{
		ID: "bench-outside", Severity: finding.Note, Confidence: math.Round(100*sum/float64(judged)) / 100, Reference: perfGuide, Evidence: quotesOf(out),
		Title: fmt.Sprintf("%d of %d sizes reach %.0f%% of what is expected, beyond their error bars", len(out), judged, 100/stats.Nearest(ratios, 0.5)),
		Cause: fmt.Sprintf("From %v to %v; the least is %.0f%% of what %s should give there. No part of the curve as a whole is slow.", out[0].Size, out[len(out)-1].Size, 100/worst, cmp.Or(out[0].Algo, "NCCL's choice")),
		Fix:   "Repeat with more iterations; NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=TUNING shows whether NCCL chose what was predicted.",
	}
}
