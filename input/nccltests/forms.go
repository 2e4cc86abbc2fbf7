package nccltests

import (
	"bytes"
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// form is how a benchmark other than nccl-tests prints its tables, or a script those of nccl-tests. What the named
// groups of heads and rows give: op, ranks, dtype; the size, with a unit that counts by 1024, or in mb and gb, which
// count by 1000, or as a count of elements of each so many bytes; the time in us or ms; the rates alg and bus in GB/s,
// algGb and busGb in Gb/s.
type form struct {
	word string // that heads and rows hold
	head *lazyre.Regexp
	row  *lazyre.Regexp
	once bool // a head announces one row
	own  bool // the figures are those of nccl-tests, and not of torch.distributed
}

// Of the ml-engineering book's benchmarks, whose all_reduce_latency_comp.py compares one payload with many small ones;
// of people who print nccl-tests in fewer columns; of EleutherAI's cookbook and DeepSpeed; IBM's, whose rate is the bus
// bandwidth; and of PARAM, whose time is the median over ranks. An example stands above each.
var forms = []form{
	// The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):
	// |    32KB |   0.92GBps |   0.52GBps |
	{
		word: "The average bandwidth of ",
		head: lazyre.New(`The average bandwidth of (?P<op>\w+) over (?P<ranks>\d{1,7}) ranks`),
		row:  lazyre.New(`^\|\s*(?P<size>[\d.]+[KMGT]?i?B)\s*\|\s*(?P<bus>[\d.]+) ?GBps\s*\|\s*(?P<alg>[\d.]+) ?GBps\s*\|`),
	},
	// The average bandwidth of all_reduce with a 4.0GB payload (5 trials, 16 ranks):
	// algbw: 11.135 GBps (89.1 Gbps)
	{
		word: "The average bandwidth of ",
		head: lazyre.New(`The average bandwidth of (?P<op>\w+) with an? (?P<size>[\d.]+[KMGT]?i?B) payload ` +
			`\([^)]*?(?P<ranks>\d{1,7}) ranks\)`),
		row:  lazyre.New(`\balgbw: ?(?P<alg>[\d.]+) ?GBps`),
		once: true,
	},
	// ----------- 1000x 0.004GB ----------------
	// busbw: 374.391 Gbps
	{
		word: "GB -",
		head: lazyre.New(`^-{3,} (?P<times>\d{1,7})x (?P<gb>[\d.]+)GB -{3,}$`),
		row:  lazyre.New(`^(?:algbw: (?P<algGb>[\d.]+)|busbw: (?P<busGb>[\d.]+)) Gbps$`),
		once: true,
	},
	// size (B)  time (us)  algbw (GB/s)  busbw (GB/s)
	// 32_768    43.83      0.75          1.31
	{
		word: "algbw",
		head: lazyre.New(`(?i)^size ?\(B\)\s+time ?\(us\)\s+algbw ?\(GB/s\)\s+busbw ?\(GB/s\)$`),
		row:  lazyre.New(`^(?P<size>[\d_]{1,20})\s+(?P<us>[\d.]+)\s+(?P<alg>[\d.]+)\s+(?P<bus>[\d.]+)$`),
		own:  true,
	},
	// ---- Performance of all_reduce on 16 devices ----
	// Size (Bytes)  Description  Duration    Throughput (Gbps)  BusBW (Gbps)
	// 131.07 KB     65536x2      105.74 us   19.835             18.595
	{
		word: "---- Performance of ",
		head: lazyre.New(`^-{3,} Performance of (?P<op>\w+) on (?P<ranks>\d{1,7}) devices -{3,}`),
		row: lazyre.New(`^[\d.]+(?: [KMGT]?B)?\s+(?P<count>\d{1,13})x(?P<each>\d{1,2})\s+` +
			`(?:(?P<ms>[\d.]+) ms|(?P<us>[\d.]+)(?: us)?)\s+[\d.]+\s+(?P<bus>[\d.]+)$`),
	},
	// size(MB)   tavg(usec)    tmin(usec)    tmax(usec)  avgbw(GB/sec)  maxbw(GB/sec)  minbw(GB/sec)
	//   100.00       480.2         470.0         510.3         364.4          372.3          342.9
	{
		word: "avgbw(GB/sec)",
		head: lazyre.New(`tavg\(usec\).*avgbw\(GB/sec\)`),
		row: lazyre.New(`^(?P<mb>[\d.]+)\s+(?P<us>[\d.]+)\s+[\d.]+\s+[\d.]+\s+(?P<bus>[\d.]+)\s+[\d.]+` +
			`\s+[\d.]+$`),
	},
	// COMMS-RES         size (B)  nElementsPerRank  Latency(us):p50  p75  p95  Min  Max  AlgBW(GB/s)  BusBW(GB/s)
	// COMMS-RES-all_reduce-float32  1048576  262144  58.1  58.3  60.2  57.0  61.0  18.048  31.584
	{word: "COMMS-RES-", head: paramRow, row: paramRow},
}

var paramRow = lazyre.New(`COMMS-RES-(?P<op>\w+?)(?:_base|_single|_into_tensor|_tensor)?-(?P<dtype>\w+)` +
	`\s+(?P<size>\d+)\s+\d+\s+(?P<us>[\d.]+)\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+[\d.]+\s+(?P<bus>[\d.]+)`)

var (
	worldSize  = lazyre.New(`(?i)^world size\s*[:=]\s*(\d{1,7})\b`)
	perNode    = lazyre.New(`--nproc[-_]per[-_]node[= ](\d{1,4})`)
	binarySize = lazyre.New(`^([\d._]+)([KMGT]?)`)
)

// matchForms reports a text with such a table.
func matchForms(data []byte) bool {
	for i := range forms {
		if f := &forms[i]; lines.Find(data, f.word, func(text string) bool { return f.head.MatchString(heading(text)) }) {
			return true
		}
	}
	return false
}

// heading is a line without what people put before it.
func heading(text string) string {
	return strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(text), "#"))
}

// formLine reads a line of such a table; false when it is none.
func (p *parser) formLine(num int, body string) bool {
	for _, re := range []*lazyre.Regexp{worldSize, perNode} { // what programs and launchers say before
		if m := re.FindStringSubmatch(body); m != nil {
			p.world, _ = strconv.Atoi(m[1])
		}
	}
	for i := range forms {
		if f := &forms[i]; strings.Contains(body, f.word) {
			if g := f.head.Groups(body); g != nil {
				p.formHead(num, f, g)
				return true
			}
		}
	}
	t := p.lastTable()
	if t == nil || t.form == nil {
		return false
	}
	if unit := strings.HasPrefix(body, "Size (Bytes)"); unit {
		t.bits = strings.Contains(body, "(Gbps)")
		return true
	}
	g := t.form.row.Groups(body)
	if g == nil || t.form.once && t.announced == nil {
		return false
	}
	p.formRow(t, num, g)
	return true
}

// opWords are what benchmarks on torch.distributed call collectives of nccl-tests.
var opWords = strings.NewReplacer("all_to_all", "alltoall", "pt2pt", "sendrecv")

// formHead begins a table, or goes on with one of several rows with a head each.
func (p *parser) formHead(num int, f *form, g map[string]string) {
	program := ""
	if op := g["op"]; op != "" {
		program = opWords.Replace(op) + "_perf"
	} else if g["times"] != "" {
		program = "all_reduce_perf"
	}
	again := func(t *Table) bool { return t.form == f && t.Test == program && (f.row == f.head || g["times"] != "") }
	t := p.fresh(num, func(t *Table) bool { return !again(t) && (t.done() || t.world > 0) })
	if t == nil {
		return
	}
	if !again(t) {
		t.form = f
		ranks, _ := strconv.Atoi(g["ranks"])
		if t.world = cmp.Or(ranks, p.world); f.own {
			t.world = p.serial
		}
		if program != "" {
			t.Test, t.OpFrom = program, "header"
		}
	}
	if t.announced = g; f.row == f.head {
		p.formRow(t, num, g)
	}
}

// formRow files a row of the table at hand. What it does not say follows from what it says.
func (p *parser) formRow(t *Table, num int, g map[string]string) {
	figure := func(name string) float64 { return figureOf(cmp.Or(g[name], t.announced[name])) }
	op := opOf(t.Test)
	size := 1e6*figure("mb") + 1e9*figure("gb") + figure("count")*figure("each")
	if m := binarySize.FindStringSubmatch(cmp.Or(g["size"], t.announced["size"])); m != nil {
		size = figureOf(m[1]) * float64(int64(1)<<(10*strings.Index(" KMGT", cmp.Or(m[2], " "))))
	} else if g["count"] != "" && op == coll.AllGather {
		size *= float64(t.world) // it counts what a rank gives
	}
	micros := figure("us") + 1e3*figure("ms")
	alg, bus := figure("alg")+figure("algGb")/8, figure("bus")+figure("busGb")/8
	if t.bits {
		bus /= 8
	}
	factor := op.BusFactor(t.world)
	switch {
	case alg == 0 && micros > 0:
		alg = size / micros / 1e3
	case alg == 0:
		alg = bus / factor
	case bus == 0:
		bus = alg * factor
	}
	dtype := cmp.Or(strings.TrimSuffix(g["dtype"], "32"), "float")
	p.addPoint(t, num, dtype, size, cmp.Or(micros, size/alg/1e3), alg, bus)
	t.announced = nil // every rank prints the same
}

// figureOf reads a number that an expression found; 0 where it is none.
func figureOf(text string) float64 {
	v, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return v
}

// addPoint files a row: bytes, microseconds, and rates in GB/s.
func (p *parser) addPoint(t *Table, num int, dtype string, size, micros, alg, bus float64) {
	if !(size >= 1 && size <= 1e15 && micros > 0 && micros < 1e12) || p.rows >= maxRows {
		p.out.Unused++
		return
	}
	p.rows++
	t.addRow(result.Point{Size: unit.Bytes(size), Out: timing(micros, rate(alg), rate(bus), nil), Line: num}, dtype, "sum",
		-1)
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
