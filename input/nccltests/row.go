package nccltests

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// torn is a row whose pieces are still coming.
type torn struct {
	point        result.Point
	dtype, redop string
	root         int      // -1 for none
	rooted       bool     // its root has been read, or it has none
	values       []string // figures so far
}

// maxValues is the most figures a row has: two halves of eight.
const maxValues = 16

// fields takes the words of a line that is no comment, or what stood before one
// of NCCL's own lines (piece).
func (p *parser) fields(num int, f []string, piece bool) {
	f = dropTime(f)
	if len(f) == 0 {
		return
	}
	if row, rest, ok := rowStart(f); ok {
		p.endRow()
		if p.table(num) == nil { // a new table would end this row
			return
		}
		p.torn = row
		row.point.Line, row.point.Size = num, row.point.Size*unit.Bytes(figureOf(scale[p.lastTable().header.units[0]]))
		p.values(rest, piece)
		return
	}
	if !allFigures(f) {
		return
	}
	if p.torn == nil {
		if piece || len(f) == 4 || len(f) == 8 { // looks like half a row whose head is lost
			if t := p.lastTable(); t != nil && t.header.seen && !t.ended {
				p.out.Unused++
			}
		}
		return
	}
	p.values(f, piece)
}

// values adds figures to the row at hand and ends it when it is complete.
func (p *parser) values(f []string, piece bool) {
	tr, t := p.torn, p.lastTable()
	half := t.header.half()
	if !tr.rooted && len(f) > 0 {
		tr.rooted = true
		if n, err := strconv.Atoi(f[0]); err == nil && n >= -1 && n < maxRanks && t.header.hasRoot(f, half, piece) {
			tr.root = n
			f = f[1:]
		}
	}
	if len(tr.values)+len(f) > maxValues {
		p.out.Unused++
		p.torn = nil
		return
	}
	tr.values = append(tr.values, f...)
	if len(tr.values) == 2*half {
		p.endRow()
	}
}

// half is how many figures a half of a row has.
func (h *columns) half() int {
	if h.perIter {
		return 8
	}
	return 4
}

// hasRoot reports that the first figure of a row is its root, which is a figure like the others. A whole line with a
// root has one figure more than its columns; of a piece or a cut line, which may have so by accident, only the header
// knows.
func (h *columns) hasRoot(f []string, half int, piece bool) bool {
	odd := len(f)%half == 1
	if h.seen && (piece || !odd) {
		return h.root
	}
	return odd
}

// endRow files the row at hand with what has come of it.
func (p *parser) endRow() {
	tr := p.torn
	p.torn = nil
	t := p.lastTable()
	if tr == nil || t == nil {
		return
	}
	half := t.header.half()
	if len(tr.values)%half != 0 || len(tr.values) == 0 {
		p.out.Unused++
	}
	read := false // one of its halves
	for i, to := range []**result.Timing{&tr.point.Out, &tr.point.In} {
		if len(tr.values) < (i+1)*half {
			break
		}
		f := tr.values[i*half : (i+1)*half]
		x, ok := parseHalf(f, t.delta, t.header.units)
		read = read || ok
		if clash := contradiction(tr.point.Size, x); clash != "" {
			p.clashes.note(tr.point.Line, clash)
			x = nil
		} else if x == nil && f[0] != "N/A" { // which is no such form
			p.out.Untimed++
			p.untimed.note(tr.point.Line, tr.point.Size.String()+" in "+f[0])
		}
		*to = x
	}
	if !read {
		return
	}
	p.addRow(t, tr.point, tr.dtype, tr.redop, tr.root)
}

// contradiction says how a time and the rate beside it differ by a thousand, or 1,024, as where one is in another unit
// than its heading says; "" where they do not. A rate has two decimals.
func contradiction(size unit.Bytes, x *result.Timing) string {
	if x == nil || x.PrintedAlg < unit.GBps {
		return ""
	}
	is := unit.Rate(float64(size) / x.Time.Mean.Seconds())
	if times := float64(x.PrintedAlg / is); math.Abs(math.Log10(max(times, 1/times))-3) > 0.012 {
		return ""
	}
	return fmt.Sprintf("%v in %v is %v, and the row says %v", size, x.Time.Mean, is, x.PrintedAlg)
}

// addRow files a row, of which the text has so many at most.
func (p *parser) addRow(t *Table, point result.Point, dtype, redop string, root int) {
	if p.rows++; p.rows > maxRows {
		p.overflow(point.Line, "%d rows", maxRows)
		return
	}
	t.addRow(point, dtype, redop, root)
}

func (p *parser) lastTable() *Table {
	if n := len(p.out.Tables); n > 0 {
		return &p.out.Tables[n-1]
	}
	return nil
}

// parseHalf reads time, algbw, busbw and wrong; per-iteration figures are left
// out. It is false when a figure is none, and nil when the time is 0. The last figure
// counts wrong values unless it is the greatest difference (delta), as in old output.
func parseHalf(f []string, delta bool, units [3]string) (*result.Timing, bool) {
	var v [4]float64
	for i := range v {
		switch x, ok := figure(f[i]); {
		case ok:
			v[i] = x
		case i == 3 && f[i] == "N/A":
			v[i] = -1
		default:
			return nil, false
		}
	}
	rates := figureOf(scale[units[2]])
	// microseconds; beyond a hundred days nothing is timed
	if v[0] *= figureOf(scale[units[1]]); !(v[0] >= 0 && v[0] < 9e12) {
		return nil, false
	}
	var wrong *int64
	if v[3] >= 0 && !delta {
		n := int64(v[3])
		wrong = &n
	}
	return timing(float64(unit.Micros(v[0]))/1e6, rate(v[1]*rates), rate(v[2]*rates), wrong), true
}

// rate turns GB/s into a rate; size 0 gives nan or inf, which is no rate.
func rate(v float64) unit.Rate {
	if !(v > 0 && v < 1e9) {
		return 0
	}
	return unit.Rate(v) * unit.GBps
}

// rowStart reads size, count, type and redop and returns the words that follow.
func rowStart(f []string) (*torn, []string, bool) {
	if len(f) < 3 || !typeForm.MatchString(f[2]) {
		return nil, nil, false
	}
	size, err1 := strconv.ParseInt(f[0], 10, 64)
	count, err2 := strconv.ParseInt(f[1], 10, 64)
	if err1 != nil || err2 != nil || size < 0 || count < 0 {
		return nil, nil, false
	}
	row := &torn{point: result.Point{Size: unit.Bytes(size)}, dtype: f[2], root: -1}
	rest := f[3:]
	if len(rest) > 0 && slices.Contains(strings.Fields("sum prod min max avg mulsum none"), rest[0]) {
		if row.redop = rest[0]; row.redop == "none" {
			row.redop = ""
		}
		rest = rest[1:]
	}
	return row, rest, len(rest) == 0 || allFigures(rest)
}

var typeForm = lazyre.New(`^(?:u?int|half|b?float|double|fp?8|char).{0,8}$`)

// allFigures reports whether every word can be a figure of a row.
func allFigures(f []string) bool {
	for _, s := range f {
		if _, ok := figure(s); !ok && s != "N/A" {
			return false
		}
	}
	return len(f) <= maxValues+1
}

// figure reads a number as C prints it, "-nan" included.
func figure(s string) (float64, bool) {
	v, err := strconv.ParseFloat(strings.Replace(s, "-nan", "nan", 1), 64)
	return v, err == nil
}

// dropTime removes the date and the clock that option -S puts at the end.
func dropTime(f []string) []string {
	if n := len(f); n >= 2 && strings.Count(f[n-1], ":") == 2 && strings.Count(f[n-2], "-") == 2 &&
		len(f[n-2]) == len("2006-01-02") {
		return f[:n-2]
	}
	return f
}

// cutRecord returns what stands before one of NCCL's log lines on the same line,
// and whether there is one. Where the two run together ("sumnode7:12:34 [0]
// NCCL INFO"), the host names of the rank lines tell them apart.
func (p *parser) cutRecord(s string) (string, bool) {
	i := strings.Index(s, " NCCL INFO")
	if i < 0 {
		i = strings.Index(s, " NCCL WARN")
	}
	if i < 0 {
		return s, false
	}
	head := strings.Fields(s[:i])
	for n := len(head) - 1; n >= 0 && n >= len(head)-4; n-- {
		parts := strings.Split(head[n], ":")
		if len(parts) < 3 || !isNumber(parts[len(parts)-1]) || !isNumber(parts[len(parts)-2]) {
			continue
		}
		glued := parts[0]
		before := strings.Join(head[:n], " ")
		return before + " " + p.splitGlued(glued), true
	}
	return strings.Join(head, " "), true
}

// splitGlued returns the end of a row's piece that stands in front of the name of a host that a rank line gave.
func (p *parser) splitGlued(name string) string {
	for i := range name {
		if p.hosts[name[i:]] {
			return name[:i]
		}
	}
	return ""
}

func isNumber(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }
