package pairs

import (
	"fmt"

	"busbar.dev/finding"
	"busbar.dev/internal/stats"
)

// What the counters of connections tell, and pairs that did not come to an end. They say the same on a slow machine as
// on a fast one.
const (
	Lossy        finding.Kind = "packet-loss"      // with everybody
	LossyPair    finding.Kind = "packet-loss-pair" // these two
	SmallMTU     finding.Kind = "small-mtu"
	SmallMTUPair finding.Kind = "small-mtu-pair"
	CutOff       finding.Kind = "cut-off"    // no end with most others
	Unfinished   finding.Kind = "unfinished" // these two
)

// OfPair tells kinds that are about two ranks: of which one it is nothing says.
func OfPair(k finding.Kind) bool {
	return k == SlowPair || k == OneWay || k == LossyPair || k == SmallMTUPair || k == Unfinished
}

// A pair loses packets where it lost so many, so large a part of them, and so many times the part that pairs lose in
// the middle: where all compete for the same links, TCP makes all lose some. Segments are small below a part of the
// others'.
const (
	leastLost  = 5
	lostPart   = 0.002
	lostTimes  = 5
	leastSent  = 200
	smallPart  = 0.9
	headers    = 52 // of TCP over IPv4 with time stamps
	severeLoss = 0.01
)

// lost is the part of a direction's segments that were lost.
func (m *Measure) lost() float64 {
	if m.Segments < leastSent {
		return 0
	}
	return float64(m.Lost) / float64(m.Segments)
}

// wire lists what the counters say.
func (t *Table) wire() []finding.Finding {
	var sent, size []float64
	for i := range t.Cells {
		if m := &t.Cells[i]; m.Segments >= leastSent {
			sent = append(sent, m.lost())
		}
		if m := &t.Cells[i]; m.MSS > 0 {
			size = append(size, float64(m.MSS))
		}
	}
	limit, usual := lostPart, 0.0
	if len(sent) > 0 {
		limit = max(limit, lostTimes*stats.Median(sent))
	}
	if len(size) > 0 {
		usual = stats.Median(size)
	}
	list := t.common(Lossy, LossyPair, func(m *Measure) bool { return m.Lost >= leastLost && m.lost() > limit },
		func(who string, hit []*Measure) finding.Finding {
			var lost, all int64
			for _, m := range hit {
				lost, all = lost+m.Lost, all+m.Segments
			}
			part := float64(lost) / float64(all)
			f := finding.Finding{
				Figure: "packet loss", Factor: 1 - part, Severity: finding.Warn,
				Fix: "Look at the error and discard counters of the ports on the way (ethtool -S, the switch), the cable and its " +
					"transceivers.",
			}
			if part >= severeLoss {
				f.Severity = finding.Error
			}
			f.Text = fmt.Sprintf("%s lost packets: TCP sent %.1f%% of %d segments again; the others' median is %.2f%%", who,
				100*part, all, 100*stats.Median(sent))
			return f
		})
	list = append(list, t.common(SmallMTU, SmallMTUPair,
		func(m *Measure) bool { return m.MSS > 0 && float64(m.MSS) < smallPart*usual },
		func(who string, hit []*Measure) finding.Finding {
			least := hit[0].MSS
			for _, m := range hit {
				least = min(least, m.MSS)
			}
			return finding.Finding{
				Figure: "MTU", Factor: float64(least) / usual, Severity: finding.Warn,
				Fix: "ip link shows an interface's MTU; set it as on the other nodes, and on the switch.",
				Text: fmt.Sprintf("%s has a small MTU: TCP segments of %d bytes, an MTU of about %d; the others' median is %.0f, "+
					"an MTU of about %.0f", who, least, least+headers, usual, usual+headers),
			}
		})...)
	return append(list, t.common(CutOff, Unfinished, func(m *Measure) bool { return m.Failed != "" },
		func(who string, hit []*Measure) finding.Finding {
			return finding.Finding{
				Figure: "end", Severity: finding.Error, Text: fmt.Sprintf("%s: %s", who, hit[0].Failed),
				Fix: "ping and ip link show whether the nodes reach each other; ping -M do -s 8972 shows the path's MTU.",
			}
		})...)
}

// common makes one finding of what is so with more than half of a rank's partners, and one of each pair that no such
// rank explains.
func (t *Table) common(ofRank, ofPair finding.Kind, is func(*Measure) bool,
	say func(who string, hit []*Measure) finding.Finding,
) []finding.Finding {
	hit, met := map[[2]int][]*Measure{}, make([][][2]int, len(t.Names)) // by pair, and the pairs of each rank
	var order [][2]int
	for i := range t.Cells {
		m := &t.Cells[i]
		k := [2]int{min(m.From, m.To), max(m.From, m.To)}
		if k[0] < 0 || k[1] >= len(t.Names) {
			continue
		}
		if _, known := hit[k]; !known {
			hit[k], order = nil, append(order, k)
			met[k[0]], met[k[1]] = append(met[k[0]], k), append(met[k[1]], k)
		}
		if is(m) {
			hit[k] = append(hit[k], m)
		}
	}
	blamed := make([]bool, len(t.Names))
	var list []finding.Finding
	for r, pairs := range met {
		n := 0
		var own []*Measure
		for _, k := range pairs {
			if len(hit[k]) > 0 {
				n++
				own = append(own, hit[k]...)
			}
		}
		if blamed[r] = len(pairs) > 1 && 2*n > len(pairs); blamed[r] {
			f := say(fmt.Sprintf("%s, with %d of %d partners,", t.name(r), n, len(pairs)), own)
			f.Kind, f.Ranks = ofRank, []int{r}
			list = append(list, f)
		}
	}
	for _, k := range order {
		if len(hit[k]) > 0 && !blamed[k[0]] && !blamed[k[1]] {
			f := say(fmt.Sprintf("%s and %s, and not with others,", t.name(k[0]), t.name(k[1])), hit[k])
			f.Kind, f.Ranks = ofPair, k[:]
			list = append(list, f)
		}
	}
	return list
}
