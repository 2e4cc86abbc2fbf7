package evidence

import (
	"regexp"
	"strconv"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/internal/lazyre"
)

// Figure is a rate that somebody wrote down, in GB/s (1e9 bytes a second).
type Figure struct {
	GBps     float64
	Tool     string // "wire": measured without NCCL (ib_write_bw, iperf); "nccl"; "" unknown
	Expected bool   // what should have come, not what came
	Bits     bool   // written in bits
	Quote    finding.Quote
}

// Change is a figure that became another: 481 to 104 GB/s, 7 h -> 16 h.
type Change struct {
	From, To float64
	Unit     string // GB/s, or as written
	Quote    finding.Quote
}

// figureReader finds rates and changes in sentences.
type figureReader struct {
	rate, change, pair, bare, thousands *regexp.Regexp
}

func newFigureReader() *figureReader {
	const number = `~?(\d[\d,]*(?:\.\d+)?)`
	const unit = `(GB/s|GBps|GiB/s|Gb/s|Gbps|Gbit/s|Gbits/sec|Gbit\b|MB/s|MiB/s|Mbit/s|Mb/s|Mbps|Mbits/sec)`
	return &figureReader{
		// 12,500 MB/s is one figure; with other units a comma parts the figures of a list.
		thousands: regexp.MustCompile(`(\d),(\d{3}\s*M(?:i?B/s|b/s|bit|bps))`),
		bare:      regexp.MustCompile(`(\d) ?Gb\b(?:$|[^/\w])`),
		pair:      regexp.MustCompile(`^[\s"]*([\w-]*\d{2,5}),([\w-]*\d{2,5})[":]* +(\d+(?:\.\d+)?)(?: GB/s)?\W*$`),
		rate: regexp.MustCompile(`(?i)((?:` + `~?\d[\d,]*(?:\.\d+)?` + `\s*(?:->|→|/|-|,|vs\.?|to|and)\s*){0,8})` +
			number + `\s*` + unit),
		change: regexp.MustCompile(`(?i)` + number + `\s*` + unit +
			`?(?:\s*h)?\s*(?:\([^)]{0,20}\)\s*)?(->|→|to|vs\.?|instead of)\s*` + number + `\s*(?:` + unit + `|(h|us|s)\b)`),
	}
}

var numberIn = lazyre.New(`\d[\d,]*(?:\.\d+)?`)

// read files the figures of a sentence.
func (f *figureReader) read(s *Set, text string, q finding.Quote) {
	if len(s.Figures) >= maxFigures || !strings.ContainsAny(text, "0123456789") {
		return
	}
	if m := f.pair.FindStringSubmatch(text); m != nil {
		s.addObservation(Pair, m[1:], q, "", -1)
		return
	}
	text = f.thousands.ReplaceAllString(text, "$1$2")
	low := strings.ToLower(text)
	tool := toolOf(low)
	if tool == "wire" { // perftest's figures are often told without "per second"
		text = f.bare.ReplaceAllString(text, "${1} Gb/s ")
		low = strings.ToLower(text)
	}
	for _, m := range f.rate.FindAllStringSubmatchIndex(text, 16) {
		scale, bits := scaleOf(text[m[6]:m[7]])
		tail := low[m[1]:min(len(low), m[1]+16)]
		head := low[max(0, m[0]-26):m[0]]
		expected := limits(tail) || limits(head) || strings.Contains(head, "carry") || strings.Contains(head, "should") ||
			strings.HasSuffix(strings.TrimSpace(head), "instead of") || strings.HasSuffix(strings.TrimSpace(head), " of")
		for _, n := range append(numberIn.FindAllString(text[m[2]:m[3]], 8), text[m[4]:m[5]]) {
			if v, ok := number(n); ok && len(s.Figures) < maxFigures {
				s.Figures = append(s.Figures, Figure{GBps: v * scale, Tool: tool, Expected: expected, Bits: bits, Quote: short(q)})
			}
		}
	}
	for _, m := range f.change.FindAllStringSubmatch(text, 8) {
		from, ok1 := number(m[1])
		to, ok2 := number(m[4])
		if !ok1 || !ok2 || len(s.Changes) >= maxFigures {
			continue
		}
		c := Change{From: from, To: to, Unit: m[6], Quote: short(q)}
		if m[5] != "" {
			scale, _ := scaleOf(m[5])
			c.From, c.To, c.Unit = from*scale, to*scale, "GB/s"
		}
		if strings.EqualFold(m[3], "instead of") { // first what came, then what should
			c.From, c.To = c.To, c.From
		}
		s.Changes = append(s.Changes, c)
	}
}

// limits reports words that make a figure what should or could come.
func limits(s string) bool {
	for _, w := range []string{
		"expected", "theoretical", "max", "target", "line rate", "advertised", "capable", "limit of",
	} {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}

// toolOf says what measured the rates of a line.
func toolOf(low string) string {
	for _, w := range []string{
		"ib_write_bw", "ib_read_bw", "ib_send_bw", "perftest", "iperf", "line rate", "raw_ethernet",
	} {
		if strings.Contains(low, w) && !strings.Contains(low, "instead of") {
			return "wire"
		}
	}
	for _, w := range []string{
		"busbw", "algbw", "nccl", "all_reduce", "all-reduce", "allreduce", "all-gather", "all_gather", "bus bandwidth",
		"reduce_scatter", "alltoall", "ring", "tree",
	} {
		if strings.Contains(low, w) {
			return "nccl"
		}
	}
	return ""
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

// Rates are the figures of a tool that were measured, not expected.
func (s *Set) Rates(tool string) []Figure {
	var list []Figure
	for _, f := range s.Figures {
		if f.Tool == tool && !f.Expected {
			list = append(list, f)
		}
	}
	return list
}
