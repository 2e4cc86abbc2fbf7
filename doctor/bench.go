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
	Nodes   int          `json:"nodes,omitempty"`  // 0 unknown
	Machine string       `json:"machine"`          // the cluster that it was compared with
	Preset  string       `json:"preset,omitempty"` // that cluster's, "" for none
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
	Unsure string `json:"unsure,omitempty"`
	// On says on which algorithm's curve the measured one lies, where that is not the predicted one's.
	On         string    `json:"lies_on,omitempty"`
	Unjudged   string    `json:"unjudged,omitempty"` // why nothing was predicted
	Thresholds []Against `json:"thresholds"`         // Bench fills them
}

// CurvePoint is one size of a curve.
type CurvePoint struct {
	Size     unit.Bytes `json:"size_bytes"`
	Margin   float64    `json:"margin,omitempty"`
	Algo     string     `json:"algo,omitempty"`        // that was predicted
	Time     unit.Time  `json:"time_s"`                // out of place, or in place where only that was measured
	InPlace  unit.Time  `json:"in_place_s,omitempty"`  // 0 not measured
	Expected unit.Time  `json:"predicted_s,omitempty"` // 0 not predicted
	BusBW    float64    `json:"busbw_GBps"`            // as nccl-tests counts

	line  int // of the file
	quote finding.Quote
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

// Quote gives points their lines, of the text that they were read from.
func (s *Curve) Quote(lines []string) {
	for i := range s.Points {
		if p := &s.Points[i]; p.line > 0 && p.line <= len(lines) {
			p.quote = finding.Quote{File: s.Source, Line: p.line, Text: strings.TrimSpace(lines[p.line-1])}
		}
	}
}

// busBW is nccl-tests' figure in GB/s.
func (s *Curve) busBW(size unit.Bytes, t unit.Time) float64 {
	if t <= 0 {
		return 0
	}
	return coll.Op{Kind: s.Op, Bytes: size}.BusBW(s.Ranks, t).GBps()
}

// Ratio is how many times as long as predicted a point took, 0 unknown.
func (p *CurvePoint) Ratio() float64 {
	if p.Expected <= 0 || p.Time <= 0 {
		return 0
	}
	return float64(p.Time) / float64(p.Expected)
}

// slack is what a part of the curve may lie beyond the margin before somebody is warned, and how far repeated
// measurements are apart, nine of ten.
const slack = 1.15

// Out reports whether a point took longer than its error bar allows, so that it is below the floor that predict names.
func (p *CurvePoint) Out() bool { return p.Ratio() > p.Margin && p.Margin > 0 }

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

// stretchOf is a part of the curve: small, middle or large.
type stretchOf struct {
	name   string
	points []*CurvePoint
	ratio  float64 // median
	margin float64 // median
	out    int
}

// slow reports whether the part as a whole is beyond its error bar.
func (p *stretchOf) slow() bool {
	return p.ratio > 0 && 2*p.out > len(p.points) && p.ratio > slack*p.margin
}

// parts cuts a curve by size.
func (s *Curve) parts() map[string]*stretchOf {
	list := map[string]*stretchOf{}
	for _, name := range predict.Sizes() {
		list[name] = &stretchOf{name: name}
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

// Bench judges curves: each against its prediction and what operators publish.
func Bench(curves []*Curve) *Report {
	r := &Report{Findings: []finding.Finding{}, Sources: []string{}}
	for _, s := range curves {
		r.Lines += len(s.Points)
		if !slices.Contains(r.Sources, s.Source) {
			r.Sources = append(r.Sources, s.Source)
		}
		r.Guessed = r.Guessed || s.Guessed
		s.Thresholds = s.against()
		r.Findings = append(r.Findings, s.judge(len(curves) > 1)...)
	}
	order(nil, r.Findings, false)
	r.Healthy = !finding.Serious(r.Findings)
	return r
}

// judge is what a curve shows.
func (s *Curve) judge(several bool) []finding.Finding {
	var list []finding.Finding
	parts := s.parts()
	for _, f := range []*finding.Finding{
		s.wrongValues(), s.peak(parts), s.middle(parts), s.latency(parts), s.below(), s.dip(parts), s.falls(), s.places(),
		s.fast(parts),
	} {
		if f == nil {
			continue
		}
		if several {
			f.Where = fmt.Sprintf("%s of %d ranks on %s", s.Op, s.Ranks, s.Machine)
		}
		if s.On != "" && (f.ID == "bench-peak" || f.ID == "bench-middle") {
			f.Cause = s.On + " " + f.Cause
		}
		part := parts[map[string]string{"bench-latency": "small", "bench-middle": "middle", "bench-peak": "large"}[f.ID]]
		far := part != nil && part.ratio > veryFar*part.margin
		if s.Guessed && f.Severity == finding.Warn && f.ID != "bench-below-threshold" && !far {
			f.Severity = finding.Note
			f.Cause += " How its GPUs are joined was assumed, because the output does not say it: give the cluster with -c " +
				"for a verdict."
		}
		if part != nil && part.name != "large" && s.Unsure != "" && !far && !parts["large"].slow() {
			f.Severity = finding.Note
			f.Cause = "Likely expected: " + s.Unsure + ". Else: " + f.Cause
		}
		if f.Evidence == nil {
			f.Evidence = []finding.Quote{}
		}
		list = append(list, *f)
	}
	if len(list) == 0 {
		if f := s.outside(); f != nil {
			list = append(list, *f)
		}
	}
	for i := range list {
		if list[0].ID == "bench-peak" && list[i].ID == "bench-middle" {
			list[i].ExplainedBy = "bench-peak"
		}
	}
	return list
}

// veryFar is beyond what a wrong guess about a machine explains.
const veryFar = 6

// quotesOf are the lines of some points.
func quotesOf(points []*CurvePoint) []finding.Quote {
	var list []finding.Quote
	for _, p := range points {
		if p.quote.Text != "" && len(list) < maxEvidence {
			list = append(list, p.quote)
		}
	}
	return list
}

// best is the greatest measured bus bandwidth and the greatest predicted one, in
// GB/s; the point of the first.
func (s *Curve) best() (got, want float64, at *CurvePoint) {
	for i := range s.Points {
		p := &s.Points[i]
		if p.BusBW > got {
			got, at = p.BusBW, p
		}
		want = math.Max(want, s.busBW(p.Size, p.Expected))
	}
	return got, want, at
}

// curveFit is how well an algorithm and a protocol explain a measured curve.
type curveFit struct {
	predict.Setting

	// likelihoods of how far off the parts are as a whole, and of how much their points differ in that
	level, shape float64
	off          float64 // mean of the factor between measured and predicted times, as a logarithm without sign
}

// explains weighs a choice for every point of the middle and large sizes: the start of a collective costs about the
// same for all. Points of one part share the model's error, so each part counts as two measurements: its median, and
// the spread around that, which is one of repeated runs.
func (s *Curve) explains(c *truth.Case, setting func(i int) predict.Setting) curveFit {
	parts, n, sum := map[string][]float64{}, 0, 0.0
	margins := s.parts()
	for i := range s.Points {
		if p := &s.Points[i]; p.Ratio() > 0 && predict.SizeClass(p.Size) != "small" {
			run, err := c.Predictor.Price(c.Ops[i], setting(i))
			if err != nil || run.Time <= 0 {
				return curveFit{}
			}
			x := math.Log(float64(p.Time) / float64(run.Time))
			parts[predict.SizeClass(p.Size)] = append(parts[predict.SizeClass(p.Size)], x)
			n, sum = n+1, sum+math.Abs(x)
		}
	}
	if n < 3 {
		return curveFit{}
	}
	f := curveFit{level: 1, shape: 1, off: sum / float64(n)}
	for name, list := range parts {
		mid, spread := stats.Nearest(list, 0.5), 0.0
		for _, x := range list {
			spread += (x - mid) * (x - mid) / float64(len(list))
		}
		f.level *= expects(mid, margins[name].margin)
		f.shape *= math.Exp(-spread / (2 * math.Log(slack) * math.Log(slack)))
	}
	return f
}

// lies finds the algorithm and protocol whose curve the measured one lies on, where that is likelier than the predicted
// choice, and than a fault that slows it by any factor.
func (s *Curve) lies(c *truth.Case) {
	parts := s.parts()
	if !parts["large"].slow() && !parts["middle"].slow() {
		return
	}
	chosen := s.explains(c, func(i int) predict.Setting { return c.Settings[i] })
	fault := max(chosen.shape, math.Exp(-2)) // one may bend the curve too, as if its points were scattered
	for _, name := range []string{"middle", "large"} {
		if len(parts[name].points) > 0 {
			fault /= greatestLog
		}
	}
	best, all := curveFit{}, 0.0
	for _, algo := range []string{"ring", "tree", "nvls", "nvls_tree"} {
		for _, proto := range []string{"simple", "ll128", "ll"} {
			f := s.explains(c, func(i int) predict.Setting {
				return predict.Setting{Algo: algo, Proto: proto, Channels: c.Settings[i].Channels}
			})
			if f.level > 0 {
				all++
			}
			if f.Setting = (predict.Setting{Algo: algo, Proto: proto}); f.level*f.shape > best.level*best.shape {
				best = f
			}
		}
	}
	// A fault and another choice are as likely before; which other choice is not known.
	p := best.level * best.shape / max(all, 1)
	p /= p + fault + chosen.level*chosen.shape*(1-slowShare)/slowShare
	last := c.Settings[len(c.Settings)-1]
	if !(p >= 0.5) || best.Algo == last.Algo && best.Proto == last.Proto {
		return
	}
	s.On = fmt.Sprintf("The measured curve lies on that of %s with protocol %s (within %.0f%%, likelihood %.0f%%), not "+
		"on that of %s with %s, which NCCL would choose.", best.Algo, best.Proto, 100*(math.Exp(best.off)-1), 100*p,
		last.Algo, last.Proto)
	switch {
	case strings.HasPrefix(last.Algo, "nvls") && !strings.HasPrefix(best.Algo, "nvls"):
		s.On += " Is NVLS switched off or not available (NCCL_NVLS_ENABLE, fabric manager)?"
	case best.Proto != last.Proto:
		s.On += " Is NCCL_PROTO set, or LL128 not available?"
	default:
		s.On += " Is NCCL_ALGO set, or a tuner plugin loaded?"
	}
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
	s.lies(c)
	return s, nil
}

// Unpredicted is a curve of which nothing is predicted, for a reason. c bounds it where it is
// known; nil where it is not.
func Unpredicted(s *result.Sweep, machine, why string, c *cluster.Cluster) *Curve {
	x := newCurve(s, machine)
	x.Unjudged = why
	for i := range s.Points {
		if p := &s.Points[i]; p.Out != nil {
			x.Points = append(x.Points, x.point(p))
		}
	}
	if c != nil {
		x.line(c)
	}
	return x
}

// point is the measured part of a point.
func (s *Curve) point(p *result.Point) CurvePoint {
	x := CurvePoint{Size: p.Size, Time: p.Out.Time.Mean, line: p.Line}
	if p.In != nil {
		x.InPlace = p.In.Time.Mean
	}
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

// line sets what the NICs of a cluster allow, for curves that nothing predicts: a
// ring over all nodes moves its bytes through every node's NICs, so bus bandwidth is
// at most the rate of one node. Only large sizes are bound by it.
func (s *Curve) line(c *cluster.Cluster) {
	t := c.TypeOf(0)
	if t == nil || s.Nodes < 2 {
		return
	}
	if s.NICs, s.NICRate = nicsOf(t); s.NICs == 0 || s.NICRate <= 0 {
		return
	}
	line := float64(s.NICs) * float64(s.NICRate)
	for i := range s.Points {
		p := &s.Points[i]
		if predict.SizeClass(p.Size) != "large" {
			continue
		}
		one := coll.Op{Kind: s.Op, Bytes: p.Size}.BusBW(s.Ranks, unit.Second)
		p.Expected, p.Margin = unit.Time(float64(unit.Second)*float64(one)/line), ownMargin
	}
}

// ownMargin is how far below line rate sockets on busy processors may stay.
const ownMargin = 2

// Tables of the package: what operators ask of a machine, and what lowers a peak.
var (
	//go:embed thresholds.csv
	thresholdTable string
	//go:embed mechanisms.csv
	mechanismTable string
)

// Threshold is what an operator asks of a machine before it is let into service.
type Threshold struct {
	Title    string     `json:"title" csv:"title"`
	Presets  []string   `json:"presets" csv:"presets"` // busbar's names of the machine
	Op       coll.Kind  `json:"op" csv:"op"`
	Nodes    int        `json:"nodes" csv:"nodes"`
	Min      unit.Bytes `csv:"min"`
	Max      unit.Bytes `csv:"max"`
	GBps     float64    `json:"busbw_GBps" csv:"busbw_GBps"`
	InPlace  bool       `json:"in_place,omitempty" csv:"in_place,optional"` // that half alone; else the mean of both
	Measured string     `json:"how" csv:"how"`
	Source   string     `json:"source" csv:"source"`
}

// Thresholds are those that operators publish, read in the files named, November 2026. AWS's checks print figures above
// what a node's NVLink carries and are left out.
func Thresholds() []Threshold { return csvtable.Must[Threshold]("thresholds.csv", thresholdTable) }

// Against is a curve compared with a threshold.
type Against struct {
	Title  string  `json:"title"`
	Asked  float64 `json:"asked_GBps"`
	Got    float64 `json:"measured_GBps"`
	How    string  `json:"how"`
	Source string  `json:"source"`
	points []*CurvePoint
}

// against finds the thresholds that a curve can be held against: those of its
// machine, its collective and its sizes. Sizes from half the smallest on count,
// for the curve is flat there.
func (s *Curve) against() []Against {
	list := []Against{}
	for _, t := range Thresholds() {
		if t.Op != s.Op || t.Nodes != s.Nodes || !slices.Contains(t.Presets, s.Preset) {
			continue
		}
		a := Against{Title: t.Title, Asked: t.GBps, How: t.Measured, Source: t.Source}
		sum := 0.0
		for i := range s.Points {
			p := &s.Points[i]
			if p.Size < t.Min/2 || p.Size > 2*t.Max {
				continue
			}
			both := p.BusBW
			if in := s.busBW(p.Size, p.InPlace); in > 0 {
				both = (both + in) / 2
				if t.InPlace {
					both = in
				}
			}
			sum += both
			a.points = append(a.points, p)
		}
		if n := len(a.points); n > 0 {
			a.Got = math.Round(100*sum/float64(n)) / 100
			list = append(list, a)
		}
	}
	return list
}

// below finds a curve that an operator would not let pass.
func (s *Curve) below() *finding.Finding {
	for _, a := range s.Thresholds {
		if a.Got >= a.Asked {
			continue
		}
		f := &finding.Finding{
			ID: "bench-below-threshold", Severity: finding.Warn, Confidence: repeats(a.Asked / a.Got), Reference: a.Source,
			Evidence: quotesOf(a.points),
			Title:    fmt.Sprintf("Below what %s must give: %.4g GB/s, %.4g are asked for", a.Title, a.Got, a.Asked),
			Cause: fmt.Sprintf("The operator's own check of such a machine (%s) fails it below %.4g GB/s.", a.How,
				a.Asked),
			Fix: "Repeat on other hosts; a host that fails alone goes back to the operator with this output.",
		}
		return f
	}
	return nil
}

// What is known of sweeps before one is looked at: of the published ones (collectives.jsonl) 21 of 165 are known to be
// slow, and a fault makes a collective up to some thirty times as slow (sockets instead of RDMA).
const (
	slowShare   = 21.0 / 165
	greatestLog = 3.5
)

// expects is the density of a logarithm x of measured by predicted time if nothing is wrong: Student's with four
// degrees of freedom, because the model's errors on machines left out have such tails; nine of ten are within the error
// bar.
func expects(x, margin float64) float64 {
	s := math.Log(max(margin, 1.01)) / 2.132
	return 0.375 / s * math.Pow(1+x*x/(4*s*s), -2.5)
}

// likely is how likely something is wrong where a time is ratio times what it should be, and one of ten is off by more
// than margin.
func likely(ratio, margin float64) float64 {
	if ratio <= 1 || margin <= 0 {
		return 0
	}
	wrong := slowShare / greatestLog
	return math.Round(100*wrong/(wrong+(1-slowShare)*expects(math.Log(ratio), margin))) / 100
}

// repeats is how likely a repeated measurement is on the same side of a bound: within slack nine of ten times.
func repeats(ratio float64) float64 {
	return math.Round(50*(1+math.Erf(1.645*math.Log(ratio)/math.Log(slack)/math.Sqrt2))) / 100
}

// likely is that of a part of the curve. Where the machine was guessed, or such runs are off more than others, the bar
// is as wide as a wrong guess makes it.
func (s *Curve) likely(ratio, margin float64, unsure bool) float64 {
	if s.Guessed || unsure {
		margin *= veryFar
	}
	return likely(ratio, margin)
}

// marginOf is the error bar of a point; a curve that nothing predicts has the one of line rates.
func marginOf(p *CurvePoint) float64 {
	if p.Margin > 0 {
		return p.Margin
	}
	return ownMargin
}

// mechanism is a known reason for a peak, a row of mechanisms.csv: between which shares of the expected rate, or GB/s,
// it leaves it.
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
	low, high  float64
	share      float64 // of all, once they are weighed
}

// likeliest sorts mechanisms by how likely a peak is under each, and gives them their shares of all: each gives any
// rate of its range alike, and is off beyond that as repeated measurements are.
func likeliest(list []mechanism, peak float64) []mechanism {
	list = slices.DeleteFunc(list, func(m mechanism) bool { return m.high < m.low || m.low <= 0 })
	sum, deviation := 0.0, math.Log(slack)/1.645
	for i := range list {
		m := &list[i]
		off := max(0, math.Log(m.low/peak), math.Log(peak/m.high)) / deviation
		m.share = math.Exp(-off*off/2) / (math.Log(m.high/m.low) + deviation*math.Sqrt(2*math.Pi))
		sum += m.share
	}
	for i := range list {
		list[i].share /= sum
	}
	slices.SortStableFunc(list, func(a, b mechanism) int { return cmp.Compare(b.share, a.share) })
	return list
}

const (
	userGuide = "https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/"
	trouble   = userGuide + "troubleshooting.html"
	envGuide  = userGuide + "env.html"
	perfGuide = "https://github.com/NVIDIA/nccl-tests/blob/master/doc/PERFORMANCE.md"
)

func (s *Curve) wrongValues() *finding.Finding {
	wrong := s.Wrong
	if wrong == 0 {
		return nil
	}
	return &finding.Finding{
		ID: "wrong-values", Severity: finding.Error, Confidence: cause.States.Confidence(),
		Title: fmt.Sprintf("%d wrong values", wrong), Reference: trouble,
		Cause: "Results of the collective are not what they must be: a protocol that is not safe here (LL128), a degraded " +
			"link, or faulty memory.",
		Fix: "Repeat with NCCL_PROTO=Simple, then host by host; nvidia-smi -q -d ECC; nvidia-smi nvlink --errorcounters.",
	}
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
		ID: "bench-peak", Severity: finding.Warn, Confidence: s.likely(large.ratio, large.margin, false),
		Reference: perfGuide,
		Title: fmt.Sprintf("The peak is too low: %.3g GB/s of bus bandwidth where about %.3g GB/s are expected", got,
			want),
		Cost:     fmt.Sprintf("large messages take %.1f times as long", large.ratio),
		Evidence: quotesOf(large.points),
	}
	if s.farBelowLine(large, got) {
		f.Confidence = max(f.Confidence, likely(float64(s.NICs)*s.NICRate.GBps()/got, ownMargin))
	}
	f.Cause, f.Fix = s.height(got, want)
	if parts["small"].slow() {
		f.Cause += fmt.Sprintf(" Small messages are slow too (%.1f times), so the whole path is another than expected.",
			parts["small"].ratio)
	}
	return f
}

// farBelowLine reports a peak that is little beside the rate of the NICs, whatever
// the model's error bar: RDMA reaches more than half of the line on every machine
// that was published.
func (s *Curve) farBelowLine(large *stretchOf, got float64) bool {
	rdma := strings.Contains(s.Class, "-roce") || strings.Contains(s.Class, "-infiniband")
	return rdma && s.NICRate > 0 && got < 0.35*float64(s.NICs)*s.NICRate.GBps() && large.ratio > 1.8
}

// height reads a peak: which known mechanism gives just that much.
func (s *Curve) height(got, want float64) (cause, fix string) {
	nic := s.NICRate.GBps()
	kind, _, _ := strings.Cut(s.Class, "-")
	switch {
	case s.Nodes > 1:
		kind = "nodes"
	case kind == "host", kind == "bridge": // cards, whatever joins them
		kind = "pcie"
	}
	var list []mechanism
	for _, m := range csvtable.Must[mechanism]("mechanisms.csv", mechanismTable) {
		switch {
		case m.OneNIC && (s.NICs < 2 || nic > 0.9*want),
			m.Class != kind && (m.Class != "" || kind == "nodes" || kind == "pcie"):
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
	list = likeliest(list, got)
	if len(list) == 0 {
		return "The limit is unknown.", "NCCL_DEBUG=INFO; busbar doctor NCCL.log."
	}
	cause, fix = fmt.Sprintf("%s (%.0f%% of the known causes)", list[0].Cause, 100*list[0].share), list[0].Fix
	if len(list) > 1 && list[0].share < oneCause {
		cause += fmt.Sprintf(" Or: %s (%.0f%%)", list[1].Cause, 100*list[1].share)
		fix += " " + list[1].Fix
	}
	return strings.NewReplacer("{percent}", fmt.Sprintf("%.0f%%", 100*got/want), "{nic}", fmt.Sprintf("%.3g", nic),
		"{nics}", strconv.Itoa(s.NICs)).Replace(cause), fix
}

// oneCause is the share from which one cause is named alone.
const oneCause = 0.7

// middle finds a curve that is only low between its ends.
func (s *Curve) middle(parts map[string]*stretchOf) *finding.Finding {
	mid := parts["middle"]
	if !mid.slow() {
		return nil
	}
	f := &finding.Finding{
		ID: "bench-middle", Severity: finding.Warn, Confidence: s.likely(mid.ratio, mid.margin, s.Unsure != ""),
		Reference: envGuide, Evidence: quotesOf(mid.points),
		Title: "Messages of 64 KiB to 16 MiB are slow: " + off(mid),
		Cause: "The ends of the curve are right and its middle is not: a protocol or algorithm taken too early or too late " +
			"(LL128 not available, NCCL_ALGO or NCCL_PROTO set), few channels, or messages through another GPU's NIC (PXN).",
		Fix: "unset NCCL_ALGO, NCCL_PROTO, NCCL_BUFFSIZE, NCCL_MIN_NCHANNELS and NCCL_MAX_NCHANNELS; NCCL_DEBUG=INFO " +
			"NCCL_DEBUG_SUBSYS=TUNING shows what is taken at which size; NCCL_PXN_DISABLE=1 to compare.",
	}
	if parts["large"].slow() {
		f.Cause = "Bandwidth is too low from here on."
	} else if parts["large"].ratio == 0 && parts["small"].slow() {
		f.Cause = "The sweep ends here, so its peak is not known; small messages are slow too: the whole path is another " +
			"one than expected (sockets, host memory)."
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
		ID: "bench-latency", Severity: finding.Warn, Confidence: s.likely(small.ratio, small.margin, s.Unsure != ""),
		Reference: perfGuide, Evidence: quotesOf(small.points),
		Title: "Small messages are slow: " + off(small),
		Cost:  "every collective below 64 KiB takes so much longer; training with many small tensors feels it",
		Cause: "Bandwidth is as it should be and latency is not: processors that save power or are busy (proxy threads " +
			"share cores), no GDRCopy, a management interface for the bootstrap's connections, another protocol than LL, or " +
			"many channels for few bytes.",
		Fix: "cpupower frequency-set -g performance; leave cores to NCCL's proxy threads (no 1-core cgroups); unset " +
			"NCCL_PROTO and NCCL_MIN_NCHANNELS.",
	}
	if s.Nodes > 1 {
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
		ID: "bench-dip", Severity: finding.Note, Confidence: s.likely(worst, marginOf(at[0]), false), Reference: envGuide,
		Evidence: quotesOf(at),
		Title:    fmt.Sprintf("A dip: %v takes %.1f times as long as a larger size", at[0].Size, worst),
		Cause: "One size falls out of the curve: a protocol or algorithm that changes there, a disturbance while it ran, " +
			"or an adapter that drops packets at that burst length.",
		Fix: "Repeat that size (-b and -e equal, more iterations); if it stays: NCCL_DEBUG_SUBSYS=TUNING, and counters " +
			"of the switch and NIC while it runs.",
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
	if last.BusBW > 0.7*got || last.Size <= 16*unit.MiB ||
		last.Expected > 0 && s.busBW(last.Size, last.Expected) < 0.8*s.busBW(at.Size, at.Expected) {
		return nil
	}
	f := &finding.Finding{
		ID: "bench-falls", Severity: finding.Note, Confidence: s.likely(got/last.BusBW, marginOf(last), false),
		Reference: perfGuide, Evidence: quotesOf([]*CurvePoint{at, last}),
		Title: fmt.Sprintf("The curve comes down: %.3g GB/s at %v, %.3g at %v", got, at.Size, last.BusBW, last.Size),
		Cause: "The largest messages are slower than smaller ones: congestion that long bursts build up (PFC, ECN, buffers " +
			"of switches), memory that has to be registered or paged, or GPUs that slow down as they heat.",
		Fix: "Counters of pause frames and ECN marks before and after; nvidia-smi -q -d PERFORMANCE while it runs; more " +
			"iterations at that size.",
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
		ID: "bench-in-place", Severity: finding.Note, Confidence: repeats(max(r, 1/r)), Reference: perfGuide,
		Evidence: []finding.Quote{},
		Title:    fmt.Sprintf("Out of place takes %.2f times as long as in place", r),
		Cause: "Both move the same bytes between GPUs; the copy into another buffer costs only where the GPU's memory is " +
			"the limit, or where one of the buffers is registered and the other is not.",
		Fix: "None where it is expected (one GPU, NVLS with registered buffers: -R 1); else repeat.",
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
			ID: "bench-impossible", Severity: finding.Warn, Confidence: 0.95, Reference: perfGuide,
			Evidence: quotesOf(large.points),
			Title: fmt.Sprintf("The figures are impossible for this cluster: large messages take %.2g of the predicted time",
				large.ratio),
			Cause: fmt.Sprintf("Not even in-switch reduction explains it: %.4g GB/s of bus bandwidth. The times or bandwidths "+
				"are in another unit (ms for µs, Gb for GB), the file was changed, or it is of another cluster than the one "+
				"described.", large.points[len(large.points)-1].BusBW),
			Fix: "Look at the units and at -c, or repeat the run. Do not calibrate with this file.",
		}
	}
	return &finding.Finding{
		ID: "bench-fast", Severity: finding.Note, Confidence: s.likely(1/large.ratio, large.margin, false),
		Reference: perfGuide, Evidence: quotesOf(large.points),
		Title: fmt.Sprintf("Faster than predicted: large messages take %.2f of the predicted time", large.ratio),
		Cause: "The cluster is better than its description (more NICs, in-network reduction, NVLink between nodes), or the " +
			"model is too careful here.",
		Fix: "None; busbar calibrate -c CLUSTER RESULT makes later predictions and verdicts sharper.",
	}
}

// outside is a note about sizes beyond their error bars where nothing else is said of the curve: it is never in order
// by silence.
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
		ID: "bench-outside", Severity: finding.Note, Confidence: math.Round(100*sum/float64(judged)) / 100,
		Reference: perfGuide, Evidence: quotesOf(out),
		Title: fmt.Sprintf("%d of %d sizes reach %.0f%% of what is expected, beyond their error bars", len(out), judged,
			100/stats.Nearest(ratios, 0.5)),
		Cause: fmt.Sprintf("From %v to %v; the least is %.0f%% of what %s should give there. No part of the curve as a "+
			"whole is slow.", out[0].Size, out[len(out)-1].Size, 100/worst, cmp.Or(out[0].Algo, "NCCL's choice")),
		Fix: "Repeat with more iterations; NCCL_DEBUG=INFO with NCCL_DEBUG_SUBSYS=TUNING shows whether NCCL chose what " +
			"was predicted.",
	}
}
