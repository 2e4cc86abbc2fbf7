package rates

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/internal/stats"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// Late is the rank, or the node, that the others wait for.
type Late struct {
	Ranks []int  `json:"ranks"`
	Host  string `json:"host,omitempty"`
	PID   int    `json:"pid,omitempty"` // of one rank
	// Share is the part of the span that the median of the other ranks waits longer than this one does.
	Share float64 `json:"share"`
	// Stretches are equal parts of the calls, Last those of them in which it waited least of all.
	Stretches  int     `json:"stretches"`
	Last       int     `json:"last"`
	Confidence float64 `json:"confidence"`
}

// What is said of a job that hardly waits is noise: ranks end a collective some microseconds apart.
const (
	leastShare   = 0.01 // of the span, to be named at all
	WarnShare    = 0.03 // of the span, to be a warning
	stretches    = 12
	fewestCalls  = 2 * stretches
	chanceToLoss = 0.01 // how probable it may be that a rank is last as often by chance
)

// late finds who waits least. In a job with several communicators, who waits for the late rank comes late itself
// elsewhere: only the first cause waits nowhere, so that waiting is summed over all of them.
func (j *Job) late(calls []call) {
	if len(calls) == 0 {
		return
	}
	slices.SortFunc(calls, func(a, b call) int { return cmp.Compare(a.at, b.at) })
	span := float64(calls[len(calls)-1].at-calls[0].at) / 1e6
	j.Seconds = span
	n := len(j.Ranks)
	sums := make([][]float64, stretches)
	for b := range sums {
		sums[b] = make([]float64, n)
	}
	total := make([]float64, n)
	for i := range calls {
		c := &calls[i]
		_, least := c.least()
		for k, p := range c.procs {
			wait := (c.us[k] - least) / 1e6 * c.weight
			sums[i*stretches/len(calls)][p] += wait
			total[p] += wait
			j.Ranks[p].Calls++
		}
	}
	var took []int
	for p := range j.Ranks {
		if j.Ranks[p].Calls > 0 {
			took = append(took, p)
			if span > 0 {
				j.Ranks[p].Wait = total[p] / span
			}
		}
	}
	if span <= 0 || len(took) < 2 {
		return
	}
	j.Waiting = medianOf(took, func(p int) float64 { return j.Ranks[p].Wait })
	if len(calls) < fewestCalls {
		return
	}
	each := make([][]int, len(took))
	for i, p := range took {
		each[i] = []int{p}
	}
	// A slow node has several late ranks that take turns; of one late rank, its neighbours wait for it.
	if j.Late = j.vote(j.byHost(took, total), sums, total, span); j.Late == nil {
		j.Late = j.vote(each, sums, total, span)
	}
}

// byHost are the ranks by hosts, where there are several of both and one host's ranks all wait less than half as long
// as the median rank.
func (j *Job) byHost(took []int, total []float64) (groups [][]int) {
	index := map[string]int{}
	for _, p := range took {
		h := j.Ranks[p].Host
		if _, ok := index[h]; !ok {
			index[h] = len(groups)
			groups = append(groups, nil)
		}
		groups[index[h]] = append(groups[index[h]], p)
	}
	most := medianOf(took, func(p int) float64 { return total[p] }) / 2
	late := func(g []int) bool {
		return len(g) > 1 && !slices.ContainsFunc(g, func(p int) bool { return total[p] > most })
	}
	if len(groups) < 2 || !slices.ContainsFunc(groups, late) {
		return nil
	}
	return groups
}

// vote is the group of ranks that waits least in nearly all stretches, nil where none does more often than chance has
// it.
func (j *Job) vote(groups [][]int, sums [][]float64, total []float64, span float64) *Late {
	mean := func(of []float64, g []int) float64 {
		sum := 0.0
		for _, p := range g {
			sum += of[p]
		}
		return sum / float64(len(g))
	}
	if len(groups) < 2 {
		return nil
	}
	best := 0
	for i, g := range groups {
		if mean(total, g) < mean(total, groups[best]) {
			best = i
		}
	}
	last := 0
	for _, s := range sums {
		if !slices.ContainsFunc(groups, func(g []int) bool { return mean(s, g) < mean(s, groups[best]) }) {
			last++
		}
	}
	var others []float64
	for i, g := range groups {
		if i != best {
			others = append(others, mean(total, g))
		}
	}
	l := &Late{Host: j.Ranks[groups[best][0]].Host, Stretches: len(sums), Last: last}
	l.Share = (stats.Median(others) - mean(total, groups[best])) / span
	chance := min(1, float64(len(groups))*tail(len(sums), last, 1/float64(len(groups))))
	if l.Share < leastShare || chance > chanceToLoss {
		return nil
	}
	l.Confidence = math.Round(100*min(0.99, 1-chance)) / 100
	for _, p := range groups[best] {
		l.Ranks = append(l.Ranks, j.Ranks[p].Rank)
	}
	if len(l.Ranks) == 1 {
		l.PID = j.Ranks[groups[best][0]].PID
	}
	return l
}

// tail is how probable at least k of n are, each with p.
func tail(n, k int, p float64) float64 {
	sum := 0.0
	for i := k; i <= n; i++ {
		c := 1.0
		for x := range i {
			c *= float64(n-x) / float64(x+1)
		}
		sum += c * math.Pow(p, float64(i)) * math.Pow(1-p, float64(n-i))
	}
	return sum
}

func medianOf(list []int, of func(int) float64) float64 {
	values := make([]float64, len(list))
	for i, p := range list {
		values[i] = of(p)
	}
	return stats.Median(values)
}

// peerFactor is how much longer than communicators of the same shape a transfer takes that is called slow. It is set
// against figures of one job: sizes of a class differ by up to two, which is taken out, and protocols' steps are not.
const peerFactor = 1.4

// proxyWakes is how long a thread that moves data for NCCL may take to wake up on an idle core: the first communicator
// of a step is that much slower than those behind it, on the healthiest network.
const proxyWakes = 100 * unit.Microsecond

// shape is what rows are compared by.
type shape struct {
	op           string
	ranks, nodes int
}

func (r *Row) shape() shape { return shape{r.Op, r.Ranks, r.Nodes} }

// nearest are the peers of a row, of nearly its size, that it is set beside on either side.
const nearest = 64

// compare sets rows beside those of communicators of the same shape. A slow link is slow in all calls: where the
// fastest tenth is as fast as elsewhere, the others waited for a core or for the GPU.
func (j *Job) compare() {
	by := map[shape][]*Row{}
	for i := range j.Rows {
		if r := &j.Rows[i]; r.Transfer > 0 {
			by[r.shape()] = append(by[r.shape()], r)
		}
	}
	for _, rows := range by {
		slices.SortStableFunc(rows, func(a, b *Row) int { return cmp.Compare(a.Bytes, b.Bytes) })
		for i, r := range rows {
			var peers, fast []float64
			for _, o := range rows[max(0, i-nearest):min(len(rows), i+nearest+1)] {
				if o != r && float64(o.Bytes) < 1.5*float64(r.Bytes) && float64(r.Bytes) < 1.5*float64(o.Bytes) {
					peers, fast = append(peers, o.Transfer.Seconds()), append(fast, o.Fast.Seconds())
				}
			}
			if len(peers) < 2 {
				continue
			}
			r.Peers = r.Transfer.Seconds() / stats.Median(peers)
			if typical := stats.Median(fast); typical > 0 {
				r.Peers = min(r.Peers, r.Fast.Seconds()/typical)
				r.woken = r.Nodes > 1 && r.Fast.Seconds()-typical < proxyWakes.Seconds()
			}
		}
	}
}

// judge says what takes the time: a transfer beyond the error bar is the network's, waiting that is more than half as
// long as the transfer is a rank's.
func (r *Row) judge() {
	r.Verdict, r.Against = Unjudged, ByNothing
	if r.Transfer == 0 {
		return
	}
	beyond := r.beyond()
	slow := beyond || r.Peers > peerFactor && !r.woken
	switch {
	case r.Expected != nil && r.Expected.Calibrated:
		// It was measured what this layout gives; peers may all be slow, or be helped by something else.
		r.Against, slow = ByCalibrated, beyond
	case r.Peers > 0 && !beyond:
		r.Against = ByPeers
	case r.Expected != nil:
		r.Against = ByPrediction
	}
	waits := r.Wait > r.Transfer/2
	switch {
	case slow && waits:
		r.Verdict = Both
	case slow:
		r.Verdict = SlowNetwork
	case waits:
		r.Verdict = Waits
	case r.Expected != nil:
		r.Verdict = AsExpected
	}
}

// beyond reports transfers beyond the error bar of what is expected. A prediction's is wide and of no host in
// particular: there the fastest tenth must be beyond it too, while a calibration was measured on these hosts.
func (r *Row) beyond() bool {
	return r.Expected != nil && r.Transfer > r.Expected.High && (r.Expected.Calibrated || r.Fast > r.Expected.High)
}

// Findings are the late rank and the slow communicators, in the form of all findings.
func (r *Report) Findings() []finding.Finding {
	list := []finding.Finding{}
	for i := range r.Jobs {
		j := &r.Jobs[i]
		slow := j.slowFindings()
		if f, ok := j.lateFinding(); ok {
			// Who is slow in one communicator comes late to the next: of a node that slow ones have in common, being late says
			// no more.
			if slices.ContainsFunc(slow,
				func(s finding.Finding) bool { return s.Where != "" && slices.Equal(s.Nodes, f.Nodes) }) {
				f.Severity = finding.Note
				f.Text += " Its own collectives are slow, which makes it late to the others."
			}
			list = append(list, f)
		}
		list = append(list, slow...)
	}
	list = append(list, r.leftOut()...)
	slices.SortStableFunc(list, finding.BySeverity)
	return list
}

// leftOut tells whose records are not all counted.
func (r *Report) leftOut() (list []finding.Finding) {
	for _, h := range r.cut {
		list = append(list, finding.Finding{
			ID: "jobs-cut:" + h, Kind: "jobs-cut", Severity: finding.Warn, Confidence: 1, Nodes: []string{h},
			Text: h + " sends records of more processes or communicators than a node has; the rest is left out.",
			Fix:  "look at which processes of " + h + " write records for busbar's profiler plugin, and who has its credentials",
		})
	}
	seen := map[string]bool{}
	for _, hosts := range r.contested {
		who := strings.Join(hosts, ",")
		if seen[who] {
			continue
		}
		seen[who] = true
		list = append(list, finding.Finding{
			ID: "contested-rank:" + who, Kind: "contested-rank", Severity: finding.Warn, Confidence: 0.5, Nodes: hosts,
			Text: strings.Join(hosts, " and ") + " claim the same rank of a communicator; neither is counted.",
			Fix:  "one of them sends records of a job that it does not run: look at who has its credentials",
		})
	}
	return list
}

// recorded names whose records a finding rests on.
func (j *Job) recorded() string {
	var hosts []string
	for i := range j.Ranks {
		hosts = append(hosts, j.Ranks[i].Host)
	}
	if text := cluster.FormatHosts(unique(hosts)); text != "" {
		return ", as recorded by " + text
	}
	return ""
}

func (j *Job) label() string {
	if j.Name != "" {
		return "job " + j.Name
	}
	return "the job"
}

func (j *Job) lateFinding() (finding.Finding, bool) {
	l := j.Late
	if l == nil {
		return finding.Finding{}, false
	}
	f := finding.Finding{
		ID: "late-rank:" + l.Host, Kind: "late-rank", Severity: finding.Note, Confidence: l.Confidence,
		Nodes: slices.DeleteFunc([]string{l.Host}, func(h string) bool { return h == "" }), Ranks: l.Ranks,
		Factor: 1 - l.Share, Figure: "waiting",
		Fix: "look at what this rank does between collectives: its input, its clock and temperature (nvidia-smi -q -d " +
			"PERFORMANCE,TEMPERATURE), other processes on its cores; py-spy dump shows its stack",
	}
	who := words.Plural(len(l.Ranks), "rank") + " of " + l.Host
	f.ID += "/" + who
	if len(l.Ranks) == 1 {
		if who = fmt.Sprintf("rank %d", l.Ranks[0]); l.Host != "" { // a profiler's trace does not say where it was made
			who += fmt.Sprintf(" on %s (process %d)", l.Host, l.PID)
		}
		f.ID = "late-rank:" + strings.TrimPrefix(fmt.Sprintf("%s/rank%d", l.Host, l.Ranks[0]), "/")
	}
	if l.Share >= WarnShare {
		f.Severity = finding.Warn
	}
	f.Text = fmt.Sprintf("%s comes last to the collectives of %s: the median of the other ranks waits %.1f%% of the time "+
		"for it.", strings.ToUpper(who[:1])+who[1:], j.label(), 100*l.Share)
	f.Evidence = finding.Facts(fmt.Sprintf("it waits least of %d ranks in %d of %d equal stretches of the %s seen%s",
		len(j.Ranks), l.Last, l.Stretches, unit.Seconds(j.Seconds), j.recorded()))
	return f, true
}

func (j *Job) slowFindings() (list []finding.Finding) {
	suspects := map[shape]suspected{}
	for i := range j.Rows {
		r := &j.Rows[i]
		if r.Verdict != SlowNetwork && r.Verdict != Both || r.Compared < 8 {
			continue
		}
		f := finding.Finding{
			ID: "slow-collective:" +
				strings.TrimPrefix(fmt.Sprintf("%s/%s/%s/%s", j.Name, r.Group, r.Op, unit.Bytes(1)<<r.Class), "/"),
			Kind: "slow-collective", Severity: finding.Warn, Nodes: unique(r.hosts), Figure: "bandwidth",
			Fix: "compare the nodes of this communicator: busbar doctor on its log, counters of its NICs (busbar fleet " +
				"nodes), and " +
				"busbar bench pairs between its nodes",
		}
		against := ""
		switch e := r.Expected; {
		case r.beyond():
			f.Factor, f.Confidence = e.Time.Seconds()/r.Transfer.Seconds(), 0.8
			against = fmt.Sprintf("%s expected by the %s (%s to %s)", e.Time, r.Against, e.Low, e.High)
		default:
			f.Factor, f.Confidence = 1/r.Peers, 0.8
			against = fmt.Sprintf("%.2f times as long as communicators of the same shape", r.Peers)
		}
		f.Text = fmt.Sprintf("%s of %s on %s transfers for %s and waits for %s, %s: the network or the links are slow "+
			"there, no rank is late.", r.Op, r.Bytes, r.Group, r.Transfer, r.Wait, against)
		if r.Verdict == Both {
			f.Text = strings.Replace(f.Text, ", no rank is late", "; ranks wait beside that", 1)
		}
		f.Evidence = finding.Facts(fmt.Sprintf("%s with the transfer timed by the rank that came last%s",
			words.Plural(r.Compared, "call"), j.recorded()))
		s, known := suspects[r.shape()]
		if !known {
			s = j.suspects(r)
			suspects[r.shape()] = s
		}
		if s.text != "" {
			if f.Where = s.text; len(s.hosts) > 0 {
				f.Nodes = s.hosts
			}
			f.Evidence = append(f.Evidence, finding.Facts("what only slow communicators have in common: "+s.text)...)
		}
		list = append(list, f)
	}
	return list
}

// suspected are the hosts that all slow communicators of a shape have and the others have not, in words with the local
// rank, whose NIC it is, where they have one in common.
type suspected struct {
	hosts []string
	text  string
}

func (j *Job) suspects(r *Row) (s suspected) {
	common, locals := map[string]int{}, map[int]int{}
	slow, fast := 0, map[string]bool{}
	for i := range j.Rows {
		o := &j.Rows[i]
		if o.shape() != r.shape() || o.Transfer == 0 {
			continue
		}
		isSlow := o.Verdict == SlowNetwork || o.Verdict == Both
		if isSlow {
			slow++
		}
		for _, h := range unique(o.hosts) {
			if isSlow {
				common[h]++
			} else {
				fast[h] = true
			}
		}
		if isSlow {
			for _, l := range slices.Compact(slices.Sorted(slices.Values(o.locals))) {
				locals[l]++
			}
		}
	}
	for h, n := range common {
		if n == slow && !fast[h] {
			s.hosts = append(s.hosts, h)
		}
	}
	slices.Sort(s.hosts)
	s.text = strings.Join(s.hosts, ",")
	if len(locals) == 1 && r.Nodes > 1 {
		for l := range locals {
			if l >= 0 {
				s.text = strings.TrimPrefix(s.text+fmt.Sprintf(", the NIC of local rank %d", l), ", ")
			}
		}
	}
	return s
}

func unique(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}
