package doctor

import (
	"cmp"
	_ "embed" // for the tables
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
		if r.Guessed = r.Guessed || s.Guessed; s.Unjudged != "" {
			r.Judged, r.Unjudged = []string{"values that were checked"}, append(r.Unjudged, "rates: "+s.Unjudged)
		}
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
		f := ofCurve("wrong-values", nil, s.Wrong)
		f.Confidence = cause.States.Confidence()
		list = append(list, f)
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

//go:embed bench.csv
var benchTable string

// benchRow is what is said of a curve, a row of bench.csv.
type benchRow struct {
	ID        string           `csv:"id"`
	Severity  finding.Severity `csv:"severity"`
	Title     string           `csv:"title"`
	Cost      string           `csv:"cost,optional"`
	Cause     string           `csv:"cause,optional"`
	Fix       string           `csv:"fix,optional"`
	Reference string           `csv:"reference,optional"`
}

const perfGuide = "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"

// ofCurve is a finding about some points of a curve; args are those of its title.
func ofCurve(id string, points []*CurvePoint, args ...any) *finding.Finding {
	rows := csvtable.Must[benchRow]("bench.csv", benchTable)
	r := rows[slices.IndexFunc(rows, func(r benchRow) bool { return r.ID == id })]
	return &finding.Finding{
		ID: id, Severity: r.Severity, Title: fmt.Sprintf(r.Title, args...), Cost: r.Cost, Cause: r.Cause, Fix: r.Fix,
		Reference: cmp.Or(r.Reference, perfGuide), Evidence: quotesOf(points),
	}
}

// peakID is the finding about large messages, which explains those about smaller ones.
const peakID = "bench-peak"

var slowParts = map[string]string{"large": peakID, "middle": "bench-middle", "small": "bench-latency"}

// slowPart is the finding about a part of the curve that is slow. Large messages show by the height that they stop at
// why.
func (s *Curve) slowPart(name string, parts map[string]*curvePart) *finding.Finding {
	part, large, f := parts[name], parts["large"], (*finding.Finding)(nil)
	unsure := name != "large" && s.Unsure != ""
	if name == "large" {
		got, want := s.best()
		f = ofCurve(peakID, part.points, got, want)
		f.Cost = fmt.Sprintf(f.Cost, part.ratio)
		f.Cause, f.Fix = s.height(got, want)
	} else {
		f = ofCurve(slowParts[name], part.points)
		f.Title += fmt.Sprintf(": %.1f times as long as predicted (the model is off by up to %.2f there)", part.ratio,
			part.margin)
		if large.slow() {
			f.ExplainedBy = peakID
			f.Cause = "Larger messages are slow too: the whole path is another one than expected."
		}
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
	id := "bench-fast"
	if !s.Guessed && truth.TooFast(1/large.ratio, large.margin) {
		id = "bench-impossible"
	}
	f := ofCurve(id, large.points, large.ratio)
	f.Confidence = likely(1/large.ratio, large.margin)
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
	median := stats.Nearest(ratios, 0.5)
	f := ofCurve("bench-outside", out, len(out), judged, first.Size, last.Size, 100/median)
	f.Confidence = likely(median, first.Margin)
	if last == &s.Points[len(s.Points)-1] {
		f.Cause = "The largest messages are slower than smaller ones: congestion that long bursts build up (PFC, ECN, " +
			"buffers of switches), memory that has to be registered or paged, or GPUs that slow down as they heat."
	}
	if worst > farOut && !s.Guessed {
		f.Severity = finding.Warn
	}
	return f
}
