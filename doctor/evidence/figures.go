package evidence

import (
	"regexp"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// Figure is a rate that somebody wrote down, in GB/s (1e9 bytes a second).
type Figure struct {
	GBps   float64
	Other  bool       // what should have come, what was measured without NCCL (ib_write_bw, iperf), or a rate in bits
	Device string     // of perftest
	Small  unit.Bytes // perftest's messages, which do not fill a port; 0: they are large
	Quote  finding.Quote
}

// figureReader finds rates in sentences.
type figureReader struct{ rate, thousands *regexp.Regexp }

func newFigureReader() *figureReader {
	return &figureReader{
		// 12,500 MB/s is one figure; with other units a comma parts the figures of a list.
		thousands: regexp.MustCompile(`(\d),(\d{3}\s*M(?:i?B/s|b/s|bit|bps))`),
		rate: regexp.MustCompile(`(?i)((?:~?\d[\d,]*(?:\.\d+)?\s*(?:->|→|/|-|,|vs\.?|to|and)\s*){0,8})` +
			`~?(\d[\d,]*(?:\.\d+)?)\s*(GB/s|GBps|GiB/s|Gb/s|Gbps|Gbit/s|Gbits/sec|Gbit\b|MB/s|MiB/s|Mbit/s|Mb/s|Mbps|` +
			`Mbits/sec)`),
	}
}

var numberIn = lazyre.New(`\d[\d,]*(?:\.\d+)?`)

// read files the figures of a sentence.
func (f *figureReader) read(s *Set, text string, q finding.Quote) {
	if len(s.Figures) >= maxFigures || !strings.ContainsAny(text, "0123456789") {
		return
	}
	text = f.thousands.ReplaceAllString(text, "$1$2")
	low := strings.ToLower(text)
	for _, m := range f.rate.FindAllStringSubmatchIndex(text, 16) {
		scale, bits := scaleOf(text[m[6]:m[7]])
		tail := low[m[1]:min(len(low), m[1]+16)]
		head := strings.TrimSpace(low[max(0, m[0]-26):m[0]])
		other := bits || anyOf(low, wireTools) || anyOf(tail, limits) || anyOf(head, limits) ||
			anyOf(head, []string{"carry", "should"}) || strings.HasSuffix(head, " of")
		for _, n := range append(numberIn.FindAllString(text[m[2]:m[3]], 8), text[m[4]:m[5]]) {
			if v, ok := number(n); ok && len(s.Figures) < maxFigures {
				s.Figures = append(s.Figures, Figure{GBps: v * scale, Other: other, Quote: short(q)})
			}
		}
	}
}

var (
	// limits are words that make a figure what should or could come.
	limits = strings.Split("expected,theoretical,max,target,line rate,advertised,capable,limit of,instead of", ",")
	// wireTools measure without NCCL.
	wireTools = strings.Split("ib_write_bw,ib_read_bw,ib_send_bw,perftest,iperf,line rate,raw_ethernet", ",")
)

// anyOf reports that one of some words is in a text.
func anyOf(text string, words []string) bool {
	return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(text, w) })
}

// scaleOf turns a unit into GB/s.
func scaleOf(unit string) (scale float64, bits bool) {
	switch u := strings.ToLower(unit); {
	case unit == "GB/s" || u == "gbps" && strings.HasPrefix(unit, "GB"):
		return 1, false
	case strings.HasPrefix(u, "gib"):
		return 1.073741824, false
	case strings.HasPrefix(unit, "MB") || strings.HasPrefix(unit, "MiB"):
		return 1e-3, false
	case strings.HasPrefix(u, "m"):
		return 1e-3 / 8, true
	case strings.HasPrefix(unit, "GB"):
		return 1, false
	}
	return 1.0 / 8, true
}

// number reads 2,458,945 and 392.1.
func number(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimSuffix(s, ","), ",", ""), 64)
	return v, err == nil && v > 0 && v < 1e15
}
