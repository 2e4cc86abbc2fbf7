package doctor

import (
	_ "embed" // for the table
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/calibrate/truth"
	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/doctor/cause"
	"busbar.dev/finding"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/stats"
	"busbar.dev/predict"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Curve is a measured sweep compared with what is predicted.
type Curve struct {
	Source  string       `json:"source"`
	Op      coll.Kind    `json:"op"`
	Ranks   int          `json:"ranks"`
	Nodes   int          `json:"nodes,omitempty"` // 0 unknown
	Machine string       `json:"machine"`         // the cluster that it was compared with
	GPU     string       `json:"gpu,omitempty"`
	NCCL    string       `json:"nccl,omitempty"`  // release that was predicted
	Class   string       `json:"class,omitempty"` // of the prediction, as predict names it
	NICs    int          `json:"nics_per_node,omitempty"`
	NICRate unit.Rate    `json:"nic_GBps,omitempty"`
	Points  []CurvePoint `json:"points"`
	// Assumed is what nobody stated; such a curve gives notes only where it matters.
	Assumed []string `json:"assumed,omitempty"`
	// Guessed says that how the GPUs are joined was assumed, not only details.
	Guessed bool  `json:"guessed,omitempty"`
	Wrong   int64 `json:"wrong"` // values
	// Unsure says why small and middle times are less sure than those that the model
	// was fitted on; then only what is far off is more than a note.
	Unsure   string `json:"unsure,omitempty"`
	Unjudged string `json:"unjudged,omitempty"` // why nothing was predicted
}

// CurvePoint is one size of a curve.
type CurvePoint struct {
	Size     unit.Bytes `json:"size_bytes"`
	Margin   float64    `json:"margin,omitempty"`
	Algo     string     `json:"algo,omitempty"`        // that was predicted
	Time     unit.Time  `json:"time_s"`                // out of place, or in place where only that was measured
	Expected unit.Time  `json:"predicted_s,omitempty"` // 0 not predicted
	BusBW    float64    `json:"busbw_GBps"`            // as nccl-tests counts

	line  int // of the file
	quote finding.Quote
}

// NewCurve predicts a measured case, each point by what NCCL would take.
func NewCurve(c *truth.Case) (*Curve, error) {
	rows, err := c.Predict(nil)
	if err != nil {
		return nil, err
	}
	s := newCurve(c.Sweep, c.Predictor.Cluster.Name)
	s.Class, s.NCCL, s.Assumed = c.Predictor.Class(), c.Predictor.Plan.Version.String(), c.Assumed
	if c.Hosts != "" {
		s.Machine += " (" + c.Hosts + ")"
	}
	if t := c.Predictor.Cluster.TypeOf(c.Predictor.Layout[0].Host); t != nil {
		s.NICs, s.NICRate = nicsOf(t)
	}
	for i, r := range rows {
		p := s.point(c.Points[i])
		p.Expected, p.Margin, p.Algo = r.Predicted, r.Margin, c.Settings[i].Algo
		s.Points = append(s.Points, p)
	}
	if !predict.Measured(s.Class) {
		s.Guessed = true // nobody has measured such a machine: no verdict
		s.Assumed = append(s.Assumed, "the margins of the widest class; nobody has published measurements of "+s.Class)
	}
	return s, nil
}

// Unpredicted is a curve of which nothing is predicted, for a reason.
func Unpredicted(s *result.Sweep, machine, why string) *Curve {
	x := newCurve(s, machine)
	x.Unjudged = why
	for i := range s.Points {
		if p := &s.Points[i]; p.Out != nil {
			x.Points = append(x.Points, x.point(p))
		}
	}
	return x
}

// newCurve is a sweep without its points.
func newCurve(s *result.Sweep, machine string) *Curve {
	x := &Curve{Source: s.File, Op: s.Op, Ranks: s.Ranks, Nodes: s.Nodes, GPU: s.GPU(), Machine: machine}
	for _, r := range s.Rows() {
		if r.Wrong != nil {
			x.Wrong += *r.Wrong
		}
	}
	return x
}

// point is the measured part of a point.
func (s *Curve) point(p *result.Point) CurvePoint {
	x := CurvePoint{Size: p.Size, Time: p.Out.Time.Mean, line: p.Line}
	x.BusBW = s.busBW(x.Size, x.Time)
	return x
}

// nicsOf counts a node's NICs and gives the rate of one.
func nicsOf(t *cluster.NodeType) (n int, rate unit.Rate) {
	for _, i := range t.Of(cluster.NIC) {
		nic := t.Devices[i].NIC
		if nic == nil {
			continue
		}
		n++
		for _, p := range nic.Ports {
			rate = max(rate, p.Rate.Value)
		}
	}
	return n, rate
}

// Quote gives points their lines, of the text that they were read from.
func (s *Curve) Quote(lines []string) {
	for i := range s.Points {
		if p := &s.Points[i]; p.line > 0 && p.line <= len(lines) {
			p.quote = finding.Quote{File: s.Source, Line: p.line, Text: strings.TrimSpace(lines[p.line-1])}
		}
	}
}

// quotesOf are the lines of some points.
func quotesOf(points []*CurvePoint) []finding.Quote {
	list := []finding.Quote{}
	for _, p := range points {
		if p.quote.Text != "" && len(list) < maxEvidence {
			list = append(list, p.quote)
		}
	}
	return list
}

// busBW is nccl-tests' figure in GB/s.
func (s *Curve) busBW(size unit.Bytes, t unit.Time) float64 {
	if t <= 0 {
		return 0
	}
	return coll.Op{Kind: s.Op, Bytes: size}.BusBW(s.Ranks, t).GBps()
}

// best is the greatest measured bus bandwidth and the greatest predicted one, in GB/s.
func (s *Curve) best() (got, want float64) {
	for i := range s.Points {
		p := &s.Points[i]
		got, want = math.Max(got, p.BusBW), math.Max(want, s.busBW(p.Size, p.Expected))
	}
	return got, want
}

// Ratio is how many times as long as predicted a point took, 0 unknown.
func (p *CurvePoint) Ratio() float64 {
	if p.Expected <= 0 || p.Time <= 0 {
		return 0
	}
	return float64(p.Time) / float64(p.Expected)
}

// Out reports whether a point took longer than its error bar allows, so that it is below the floor that predict names.
func (p *CurvePoint) Out() bool { return p.Ratio() > p.Margin && p.Margin > 0 }

const (
	// slack is what a part of the curve may lie beyond the margin before somebody is warned, and how far repeated
	// measurements are apart, nine of ten.
	slack = 1.15
	// veryFar is beyond what a wrong guess about a machine explains.
	veryFar = 6
	// farOut is how far beyond its error bar a single size must lie to be more than a note: up to there healthy sweeps
	// that were published have such sizes as often as sick ones.
	farOut = 5
)

// Verdict is the word for a point beside its prediction: a guess about the machine makes it a question, up to what no
// guess explains.
func (s *Curve) Verdict(p *CurvePoint) string {
	switch {
	case !p.Out():
		return ""
	case s.Guessed && p.Ratio() <= veryFar*p.Margin:
		return "slow?"
	}
	return "slow"
}

// curvePart is the small, the middle or the large sizes of a curve.
type curvePart struct {
	points []*CurvePoint
	ratio  float64 // median
	margin float64 // median
	out    int
}

// slow reports whether the part as a whole is beyond its error bar.
func (p *curvePart) slow() bool {
	return p.ratio > 0 && 2*p.out > len(p.points) && p.ratio > slack*p.margin
}

// parts cuts a curve by size.
func (s *Curve) parts() map[string]*curvePart {
	list := map[string]*curvePart{}
	for _, name := range predict.Sizes() {
		list[name] = &curvePart{}
	}
	for i := range s.Points {
		if p := &s.Points[i]; p.Ratio() > 0 {
			part := list[predict.SizeClass(p.Size)]
			part.points = append(part.points, p)
			if p.Out() {
				part.out++
			}
		}
	}
	for _, part := range list {
		var ratios, margins []float64
		for _, p := range part.points {
			ratios, margins = append(ratios, p.Ratio()), append(margins, p.Margin)
		}
		part.ratio, part.margin = stats.Nearest(ratios, 0.5), stats.Nearest(margins, 0.5)
	}
	return list
}

// Bench judges curves, each against its prediction.
func Bench(curves []*Curve) *Report {
	r := &Report{Findings: []finding.Finding{}, Sources: []string{}}
	for _, s := range curves {
		r.Lines += len(s.Points)
		if !slices.Contains(r.Sources, s.Source) {
			r.Sources = append(r.Sources, s.Source)
		}
		r.Guessed = r.Guessed || s.Guessed
		for _, f := range s.judge() {
			if len(curves) > 1 {
				f.Where = fmt.Sprintf("%s of %d ranks on %s", s.Op, s.Ranks, s.Machine)
			}
			r.Findings = append(r.Findings, *f)
		}
	}
	order(nil, r.Findings, false)
	r.Healthy = !finding.Serious(r.Findings)
	return r
}

// judge is what a curve shows: of every part whether it is slow, whether the peak is too high to be true, and where
// nothing else is to be said, which sizes are beyond their bars.
func (s *Curve) judge() (list []*finding.Finding) {
	parts := s.parts()
	if s.Wrong > 0 {
		list = append(list, s.wrongValues())
	}
	for _, name := range []string{"large", "middle", "small"} {
		if parts[name].slow() {
			list = append(list, s.slowPart(name, parts))
		}
	}
	if f := s.fast(parts["large"]); f != nil {
		list = append(list, f)
	}
	if f := s.beyond(); f != nil && len(list) == 0 {
		list = append(list, f)
	}
	return list
}

const (
	trouble   = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting.html"
	perfGuide = "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"
)

func (s *Curve) wrongValues() *finding.Finding {
	return &finding.Finding{
		ID: "wrong-values", Severity: finding.Error, Confidence: cause.States.Confidence(),
		Title: fmt.Sprintf("%d wrong values", s.Wrong), Reference: trouble, Evidence: []finding.Quote{},
		Cause: "Results of the collective are not what they must be: a protocol that is not safe here (LL128), a degraded " +
			"link, or faulty memory.",
		Fix: "Repeat with NCCL_PROTO=Simple, then host by host; nvidia-smi -q -d ECC; nvidia-smi nvlink --errorcounters.",
	}
}

// slowWords is what is said of a part of a curve that is slow.
type slowWords struct{ id, title, cost, cause, fix string }

// peakID is the finding about large messages, which explains those about smaller ones.
const peakID = "bench-peak"

var slowParts = map[string]slowWords{
	"large": {id: peakID, title: "The peak is too low"},
	"middle": {
		id: "bench-middle", title: "Messages of 64 KiB to 16 MiB are slow",
		cause: "The ends of the curve are right and its middle is not: a protocol or algorithm taken too early or too late " +
			"(LL128 not available, NCCL_ALGO or NCCL_PROTO set), few channels, or messages through another GPU's NIC (PXN).",
		fix: "unset NCCL_ALGO, NCCL_PROTO, NCCL_BUFFSIZE, NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS; NCCL_DEBUG=INFO " +
			"NCCL_DEBUG_SUBSYS=TUNING shows what is taken at which size; NCCL_PXN_DISABLE=1 to compare.",
	},
	"small": {
		id: "bench-latency", title: "Small messages are slow",
		cost: "every collective below 64 KiB takes so much longer; training with many small tensors feels it",
		cause: "Bandwidth is as it should be and latency is not: processors that save power or are busy (proxy threads " +
			"share cores), no GDRCopy, a management interface for the bootstrap's connections, another protocol than LL, or " +
			"many channels for few bytes. Between nodes also sockets instead of RDMA, adaptive routing, a far switch.",
		fix: "cpupower frequency-set -g performance; leave cores to NCCL's proxy threads (no 1-core cgroups); unset " +
			"NCCL_PROTO and NCCL_MIN_NCHANNELS.",
	},
}

// slowPart is the finding about a part of the curve that is slow. Large messages show by the height that they stop at
// why.
func (s *Curve) slowPart(name string, parts map[string]*curvePart) *finding.Finding {
	words, part, large := slowParts[name], parts[name], parts["large"]
	f := &finding.Finding{
		ID: words.id, Severity: finding.Warn, Reference: perfGuide, Evidence: quotesOf(part.points),
		Title: fmt.Sprintf("%s: %.1f times as long as predicted (the model is off by up to %.2f there)", words.title,
			part.ratio, part.margin),
		Cost: words.cost, Cause: words.cause, Fix: words.fix,
	}
	unsure := name != "large" && s.Unsure != ""
	switch {
	case name == "large":
		got, want := s.best()
		f.Title = fmt.Sprintf("%s: %.3g GB/s of bus bandwidth where about %.3g GB/s are expected", words.title, got, want)
		f.Cost = fmt.Sprintf("large messages take %.1f times as long", part.ratio)
		f.Cause, f.Fix = s.height(got, want)
	case large.slow():
		f.ExplainedBy = peakID
		f.Cause = "Larger messages are slow too: the whole path is another one than expected."
	}
	margin := part.margin
	if s.Guessed || unsure {
		margin *= veryFar
	}
	f.Confidence = likely(part.ratio, margin)
	switch {
	case part.ratio > veryFar*part.margin:
	case !predict.Measured(s.Class):
		f.Severity = finding.Note
		f.Cause += " Nobody has published measurements of such a machine: its error bar is the widest there is."
	case s.Guessed:
		f.Severity = finding.Note
		f.Cause += " How its GPUs are joined was assumed, because the output does not say it: give the cluster with -c " +
			"for a verdict."
	case unsure && !large.slow():
		f.Severity = finding.Note
		f.Cause = "Likely expected: " + s.Unsure + ". Else: " + f.Cause
	}
	return f
}

// What is known of sweeps before one is looked at: of the published ones (collectives.jsonl) 21 of 165 are known to be
// slow, and a fault makes a collective up to some thirty times as slow (sockets instead of RDMA).
const (
	slowShare   = 21.0 / 165
	greatestLog = 3.5
)

// likely is how likely something is wrong where a time is ratio times what it should be, and one of ten is off by more
// than margin. Where nothing is wrong, the logarithm is Student's with four degrees of freedom, because the model's
// errors on machines left out have such tails.
func likely(ratio, margin float64) float64 {
	if ratio <= 1 || margin <= 0 {
		return 0
	}
	x, deviation := math.Log(ratio), math.Log(max(margin, 1.01))/2.132
	right := (1 - slowShare) * 0.375 / deviation * math.Pow(1+x*x/(4*deviation*deviation), -2.5)
	wrong := slowShare / greatestLog
	return math.Round(100*wrong/(wrong+right)) / 100
}

//go:embed mechanisms.csv
var mechanismTable string

// mechanism is a known reason for a peak, a row of mechanisms.csv: between which shares of the expected rate, or GB/s,
// it leaves it. What is more particular stands first.
type mechanism struct {
	Name       string  `csv:"name"`
	Class      string  `csv:"class,optional"` // nodes: between nodes; else that of the GPUs' links
	LeastShare float64 `csv:"least_share,optional"`
	MostShare  float64 `csv:"most_share,optional"`
	LeastGBps  float64 `csv:"least_GBps,optional"`
	MostGBps   float64 `csv:"most_GBps,optional"`
	OneNIC     bool    `csv:"one_nic,optional"`
	Cause      string  `csv:"cause"`
	Fix        string  `csv:"fix"`
}

// leaves reports a mechanism that leaves such a peak: between nodes or on links of a class, of NICs of a rate.
func (m *mechanism) leaves(got, want, nic float64, class string) bool {
	const near = 1.25
	low, high := m.LeastShare*want, min(want, m.MostShare*want)
	switch {
	case m.Class != class && (m.Class != "" || class == "nodes" || class == "pcie"):
		return false
	case m.OneNIC:
		low, high = 0.6*nic, nic
	case m.MostGBps > 0:
		low, high = m.LeastGBps, min(high, m.MostGBps)
	}
	return got > low/near && got < high*near
}

// height reads a peak: which known mechanisms give just that much, the two most particular.
func (s *Curve) height(got, want float64) (cause, fix string) {
	class, _, _ := strings.Cut(s.Class, "-")
	switch {
	case s.Nodes > 1:
		class = "nodes"
	case class == "host", class == "bridge": // cards, whatever joins them
		class = "pcie"
	}
	nic := s.NICRate.GBps()
	if s.NICs < 2 || nic > 0.9*want { // one is as good as all
		nic = 0
	}
	var causes, fixes []string
	for _, m := range csvtable.Must[mechanism]("mechanisms.csv", mechanismTable) {
		if m.leaves(got, want, nic, class) && len(causes) < 2 {
			causes, fixes = append(causes, m.Cause), append(fixes, m.Fix)
		}
	}
	fill := strings.NewReplacer("{percent}", fmt.Sprintf("%.0f%%", 100*got/want), "{nic}", fmt.Sprintf("%.3g", nic),
		"{nics}", strconv.Itoa(s.NICs))
	return fill.Replace(strings.Join(causes, " Or: ")), strings.Join(fixes, " ")
}

// fast is about a curve that is better than predicted: so much better that its figures are wrong, or a note.
func (s *Curve) fast(large *curvePart) *finding.Finding {
	if large.ratio == 0 || large.ratio*large.margin*slack > 1 {
		return nil
	}
	f := &finding.Finding{
		ID: "bench-fast", Severity: finding.Note, Confidence: likely(1/large.ratio, large.margin), Reference: perfGuide,
		Evidence: quotesOf(large.points),
		Title:    fmt.Sprintf("Faster than predicted: large messages take %.2g of the predicted time", large.ratio),
		Cause: "The cluster is better than its description (more NICs, in-network reduction, NVLink between nodes), or the " +
			"model is too careful here.",
		Fix: "None; busbar calibrate -c CLUSTER RESULT makes later predictions and verdicts sharper.",
	}
	if !s.Guessed && truth.TooFast(1/large.ratio, large.margin) {
		f.ID, f.Severity = "bench-impossible", finding.Warn
		f.Title = "The figures are impossible for this cluster: large messages take " +
			fmt.Sprintf("%.2g of the predicted time", large.ratio)
		f.Cause = "Not even in-switch reduction explains it. The times or bandwidths are in another unit (ms for µs, Gb " +
			"for GB), the file was changed, or it is of another cluster than the one described."
		f.Fix = "Look at the units and at -c, or repeat the run. Do not calibrate with this file."
	}
	return f
}

// beyond is about sizes beyond their error bars where no part as a whole is: a curve is never in order by silence.
func (s *Curve) beyond() *finding.Finding {
	var out []*CurvePoint
	var ratios []float64
	worst, judged := 1.0, 0
	for i := range s.Points {
		p := &s.Points[i]
		if p.Ratio() > 0 {
			judged++
		}
		if p.Out() {
			out, ratios, worst = append(out, p), append(ratios, p.Ratio()), max(worst, p.Ratio()/p.Margin)
		}
	}
	if len(out) == 0 {
		return nil
	}
	first, last := out[0], out[len(out)-1]
	f := &finding.Finding{
		ID: "bench-outside", Severity: finding.Note, Reference: perfGuide, Evidence: quotesOf(out),
		Confidence: likely(stats.Nearest(ratios, 0.5), first.Margin),
		Title: fmt.Sprintf("%d of %d sizes, from %v to %v, reach %.0f%% of what is expected, beyond their error bars",
			len(out), judged, first.Size, last.Size, 100/stats.Nearest(ratios, 0.5)),
		Cause: "No part of the curve as a whole is slow, but these sizes fall out of it: a protocol or algorithm that " +
			"changes there, a disturbance while they ran, or an adapter that drops packets at that burst length.",
		Fix: "Repeat them (-b and -e, more iterations); if it stays: NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=TUNING, and " +
			"while they run counters of pause frames and ECN marks, and nvidia-smi -q -d PERFORMANCE.",
	}
	if last == &s.Points[len(s.Points)-1] {
		f.Cause = "The largest messages are slower than smaller ones: congestion that long bursts build up (PFC, ECN, " +
			"buffers of switches), memory that has to be registered or paged, or GPUs that slow down as they heat."
	}
	if worst > farOut && !s.Guessed {
		f.Severity = finding.Warn
	}
	return f
}
