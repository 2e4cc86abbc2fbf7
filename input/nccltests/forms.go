package nccltests

import (
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// form is how a benchmark other than nccl-tests prints its table, or a script that of nccl-tests. What the named groups
// of heads and rows give: op, ranks; the size, which counts by 1024, or in gb, which count by 1000; the time in us; the
// rates alg and bus in GB/s, and busGb in Gb/s.
type form struct {
	word string // that heads hold
	head *lazyre.Regexp
	row  *lazyre.Regexp
	once bool // a head announces one row
	own  bool // the figures are those of nccl-tests, and not of torch.distributed
}

// Of the ml-engineering book's benchmarks, whose all_reduce_latency_comp.py compares one payload with many small ones,
// and of people who print nccl-tests in fewer columns. An example stands above each.
var forms = []form{
	// The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):
	// |    32KB |   0.92GBps |   0.52GBps |
	{
		word: "The average bandwidth of ",
		head: lazyre.New(`The average bandwidth of (?P<op>\w+) over (?P<ranks>\d{1,7}) ranks`),
		row:  lazyre.New(`^\|\s*(?P<size>[\d.]+[KMGT]?i?B)\s*\|\s*(?P<bus>[\d.]+) ?GBps\s*\|\s*(?P<alg>[\d.]+) ?GBps\s*\|`),
	},
	// ----------- 1000x 0.004GB ----------------
	// busbw: 374.391 Gbps
	{
		word: "GB -",
		head: lazyre.New(`^-{3,} \d{1,7}x (?P<gb>[\d.]+)GB -{3,}$`),
		row:  lazyre.New(`^busbw: (?P<busGb>[\d.]+) Gbps$`),
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
}

var (
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
	if m := perNode.FindStringSubmatch(body); m != nil {
		p.world, _ = strconv.Atoi(m[1])
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
	if t == nil || t.form == nil || t.form.once && t.announced == nil {
		return false
	}
	g := t.form.row.Groups(body)
	if g != nil {
		p.formRow(t, num, g)
	}
	return g != nil
}

// formHead begins a table, or goes on with one that has a head for each row.
func (p *parser) formHead(num int, f *form, g map[string]string) {
	t := p.lastTable()
	if t == nil || t.form != f || !f.once {
		if t = p.fresh(num, func(t *Table) bool { return t.done() || t.world > 0 }); t == nil {
			return
		}
		ranks, _ := strconv.Atoi(g["ranks"])
		t.form, t.world = f, cmp.Or(ranks, p.world)
		if f.own {
			t.world = p.serial
		} else {
			t.Test, t.OpFrom = cmp.Or(g["op"], "all_reduce")+"_perf", "header"
		}
	}
	t.announced = g
}

// formRow files a row of the table at hand. What it does not say follows from what it says.
func (p *parser) formRow(t *Table, num int, g map[string]string) {
	size := 1e9 * figureOf(t.announced["gb"])
	if m := binarySize.FindStringSubmatch(g["size"]); m != nil {
		size = figureOf(m[1]) * float64(int64(1)<<(10*strings.Index(" KMGT", cmp.Or(m[2], " "))))
	}
	t.announced = nil // every rank prints the same
	alg, bus := figureOf(g["alg"]), figureOf(g["bus"])+figureOf(g["busGb"])/8
	if alg == 0 {
		alg = bus / opOf(t.Test).BusFactor(t.world)
	}
	micros := cmp.Or(figureOf(g["us"]), size/alg/1e3)
	if !(size >= 1 && size <= 1e15 && micros > 0 && micros < 1e12) {
		p.out.Unused++
		return
	}
	point := result.Point{Size: unit.Bytes(size), Out: timing(micros, rate(alg), rate(bus), nil), Line: num}
	p.addRow(t, point, "float", "sum", -1)
}

// figureOf reads a number that an expression found; 0 where it is none.
func figureOf(text string) float64 {
	v, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return v
}
