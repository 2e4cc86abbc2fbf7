package nccltests

import (
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// form is how a benchmark other than nccl-tests prints its tables, or a script those of nccl-tests. What the named
// groups of heads and rows give: op, ranks; the size, with a unit that counts by 1024; the time in us; the rates alg
// and bus in GB/s, and all for what all ranks of an all-reduce send, of a size that the text says; nodes, per node, and
// the algorithm.
type form struct {
	word string // that heads and rows hold
	head *lazyre.Regexp
	row  *lazyre.Regexp
	own  bool // the figures are those of nccl-tests, and not of torch.distributed
}

// Of the ml-engineering book's benchmark; of people who print nccl-tests in fewer columns, and of those who give speeds
// of transfer. An example stands above each.
var forms = []form{
	// The average bandwidth of all_reduce over 8 ranks (5 warmups / 20 trials):
	// |    32KB |   0.92GBps |   0.52GBps |
	{
		word: "The average bandwidth of ",
		head: lazyre.New(`The average bandwidth of (?P<op>\w+) over (?P<ranks>\d{1,7}) ranks`),
		row:  lazyre.New(`^\|\s*(?P<size>[\d.]+[KMGT]?i?B)\s*\|\s*(?P<bus>[\d.]+) ?GBps\s*\|\s*(?P<alg>[\d.]+) ?GBps\s*\|`),
	},
	// size (B)  time (us)  algbw (GB/s)  busbw (GB/s)
	// 32_768    43.83      0.75          1.31
	{
		word: "algbw",
		head: lazyre.New(`(?i)^[|\s]*size ?\(B\)[|\s]+time ?\(us\)[|\s]+algbw ?\(GB/s\)[|\s]+busbw ?\(GB/s\)[|\s]*$`),
		row: lazyre.New(`^[|\s]*(?P<size>[\d_]{1,20})[|\s]+(?P<us>[\d.]+)[|\s]+(?P<alg>[\d.]+)[|\s]+` +
			`(?P<bus>[\d.]+)[|\s]*$`),
		own: true,
	},
	// | run | Nodes | GPUs per Node | Topology | Measured Transfer speed (GB/s) | Time (s) |
	// | r-1 | 2     | 2             | Ring     | 13.5                           | 0.584    |
	{
		word: "ransfer speed (GB/s)",
		head: lazyre.New(`(?i)\| *nodes *\| *GPUs per node *\|(?: *(?:topology|algorithm) *\|)?` +
			`(?P<sum>[^|]*transfer speed \(GB/s\)) *\|`),
		row: lazyre.New(`\| *(?P<nodes>\d{1,5}) *\| *(?P<per>\d{1,3}) *\|(?: *(?P<algo>[A-Za-z]{1,20}) *\|)?` +
			` *(?P<all>[\d.]+) *\|`),
	},
}

var binarySize = lazyre.New(`^([\d._]+)([KMGT]?)`)

// heading is a line without what people put before it.
func heading(text string) string {
	return strings.TrimSpace(strings.TrimLeft(strings.TrimSpace(text), "#"))
}

// formLine reads a line of such a table; false when it is none.
func (p *parser) formLine(num int, body string) bool {
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
	g := t.form.row.Groups(body)
	if g == nil {
		return false
	}
	p.formRow(t, num, g)
	return true
}

// opWords are what benchmarks on torch.distributed call collectives of nccl-tests.
var opWords = strings.NewReplacer("all_to_all", "alltoall", "pt2pt", "sendrecv")

// formHead begins a table.
func (p *parser) formHead(line int, f *form, g map[string]string) {
	program := ""
	if op := g["op"]; op != "" {
		program = opWords.Replace(op) + "_perf"
	} else if g["sum"] != "" {
		program = "all_reduce_perf"
	}
	t := p.fresh(line, func(t *Table) bool { return t.done() || t.world > 0 })
	if t == nil {
		return
	}
	t.form = f
	if t.world = cmp.Or(num.Int(g["ranks"]), p.world); f.own {
		t.world = p.serial
	} else {
		t.gpu = p.gpu
	}
	if t.Library = cmp.Or(t.Library, p.release); p.layout.ranks() == t.world {
		t.layout = p.layout
	}
	if program != "" {
		t.Test, t.OpFrom = program, "header"
	}
}

// formRow files a row of the table at hand. What it does not say follows from what it says.
func (p *parser) formRow(t *Table, num int, g map[string]string) {
	figure := func(name string) float64 { return figureOf(g[name]) }
	dtype := "float"
	if g["per"] != "" {
		dtype = cmp.Or(p.dtype, dtype)
		if t = p.tableOf(t, num, shape{int(figure("nodes")), int(figure("per"))}, strings.ToLower(g["algo"])); t == nil {
			return
		}
	}
	size := 0.0
	if m := binarySize.FindStringSubmatch(g["size"]); m != nil {
		size = figureOf(m[1]) * float64(int64(1)<<(10*strings.Index(" KMGT", cmp.Or(m[2], " "))))
	}
	micros := figure("us")
	alg, bus := figure("alg"), figure("bus")
	factor := opOf(t.Test).BusFactor(t.world)
	switch {
	case figure("all") > 0: // bytes × 2 (ranks − 1) over the time
		size, bus = p.payload, figure("all")/float64(max(t.world, 1))
		alg = bus / factor
	case alg == 0 && micros > 0:
		alg = size / micros / 1e3
	case alg == 0:
		alg = bus / factor
	case bus == 0:
		bus = alg * factor
	}
	micros = cmp.Or(micros, size/alg/1e3)
	if !(size >= 1 && size <= 1e15 && micros > 0 && micros < 1e12) {
		p.out.Unused++
		return
	}
	point := result.Point{Size: unit.Bytes(size), Out: timing(micros, rate(alg), rate(bus), nil), Line: num}
	p.addRow(t, point, dtype, "sum", -1)
}

// tableOf is the table of a row that says where it ran and by which algorithm: the one at hand, or another under the
// same head.
func (p *parser) tableOf(t *Table, num int, at shape, algo string) *Table {
	if t.done() && (t.layout != at || t.algo != algo) {
		f := t.form
		if t = p.newTable(num); t == nil {
			return nil
		}
		p.formHead(num, f, map[string]string{"sum": "again"})
	}
	t.layout, t.world, t.algo = at, at.ranks(), algo
	return t
}

// figureOf reads a number that an expression found; 0 where it is none.
func figureOf(text string) float64 {
	v, _ := strconv.ParseFloat(strings.ReplaceAll(text, "_", ""), 64)
	return v
}
