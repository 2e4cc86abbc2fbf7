package nccltests

import (
	"bytes"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// The benchmarks of the ml-engineering book print a table in Markdown, or one payload:
//
//	The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):
//	| payload |    busbw   |    algbw   |
//	|    32KB |   0.92GBps |   0.52GBps |
//
//	The average bandwidth of all_reduce with a 4.0GB payload (5 trials, 16 ranks):
//	algbw: 11.135 GBps (89.1 Gbps)
//	busbw: 20.878 GBps (167.0 Gbps)
const averageOf = "The average bandwidth of "

var (
	overRanks  = lazyre.New(`^(\w+) over (\d{1,7}) ranks`)
	onePayload = lazyre.New(`^(\w+) with an? ([\d.]+[KMGT]?i?B) payload \([^)]*?(\d{1,7}) ranks\)`)
	payloadRow = lazyre.New(`^\|\s*([\d.]+[KMGT]?i?B)\s*\|\s*([\d.]+) ?GBps\s*\|\s*([\d.]+) ?GBps\s*\|`)
	payloadAlg = lazyre.New(`\balgbw: ?([\d.]+) ?GBps`)
)

// payloads reads a line of such a table; false when it is none.
func (p *parser) payloads(num int, body string) bool {
	if _, head, ok := strings.Cut(body, averageOf); ok {
		m, size := overRanks.FindStringSubmatch(head), ""
		if m == nil {
			if m = onePayload.FindStringSubmatch(head); m == nil {
				return false
			}
			m, size = []string{m[0], m[1], m[3]}, m[2]
		}
		if t := p.fresh(num, func(t *Table) bool { return t.done() || t.world > 0 }); t != nil {
			t.Test, t.OpFrom, t.payload, t.torch = m[1]+"_perf", "header", size, true
			t.world, _ = strconv.Atoi(m[2])
		}
		return true
	}
	t := p.lastTable()
	if t == nil || t.world == 0 {
		return false
	}
	if m := payloadRow.FindStringSubmatch(body); m != nil {
		p.payloadPoint(t, num, m[1], m[3], m[2])
		return true
	}
	if m := payloadAlg.FindStringSubmatch(body); m != nil && t.payload != "" {
		p.payloadPoint(t, num, t.payload, m[1], "")
		t.payload = ""
		return true
	}
	return false
}

// payloadPoint files one payload. Its letters count by 1024.
func (p *parser) payloadPoint(t *Table, num int, payload, alg, bus string) {
	n, unitOf := strings.TrimRight(payload, "KMGTiB"), 1.0
	for _, letter := range strings.TrimRight(payload[len(n):], "iB") {
		unitOf = float64(int64(1) << (10 * (1 + strings.IndexRune("KMGT", letter))))
	}
	size, gbps := figureOf(n)*unitOf, figureOf(alg)
	p.addPoint(t, num, "float", size, size/gbps/1e3, gbps, figureOf(bus))
}

// rowAlone reports a row without its header, as people paste it: size, count, type, and figures.
func rowAlone(data []byte) bool {
	for line := range bytes.Lines(data[:min(len(data), 1<<16)]) {
		if len(line) < 40 || len(line) > 400 {
			continue
		}
		f := strings.Fields(string(line))
		if row, rest, ok := rowStart(f); ok && len(rest) >= 4 && allFigures(rest) && row.point.Size > 0 {
			return true
		}
	}
	return false
}
