package svg

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"
)

type point struct{ x, y float64 }

func (p point) add(o point) point         { return point{p.x + o.x, p.y + o.y} }
func (p point) sub(o point) point         { return point{p.x - o.x, p.y - o.y} }
func (p point) times(f float64) point     { return point{p.x * f, p.y * f} }
func (p point) length() float64           { return math.Hypot(p.x, p.y) }
func (p point) cross(o point) float64     { return p.x*o.y - p.y*o.x }
func between(a, b point, f float64) point { return a.add(b.sub(a).times(f)) }

// run is points joined by straight lines; curves are cut into those.
type run struct {
	at   []point
	shut bool
}

const (
	curveCuts  = 40
	corner     = 0.5522847498 // of a radius: where a quarter of a circle has its control points
	miterLimit = 4.0          // as SVG has it
	maxDashes  = 1e5          // more are no picture
)

// curve appends a cubic Bézier from the last point.
func (r *run) curve(b, c, d point) {
	a := r.at[len(r.at)-1]
	for i := 1; i <= curveCuts; i++ {
		t := float64(i) / curveCuts
		ab, bc, cd := between(a, b, t), between(b, c, t), between(c, d, t)
		r.at = append(r.at, between(between(ab, bc, t), between(bc, cd, t), t))
	}
}

// rounded is a box whose corners have a radius; one of half its side makes a disc.
func rounded(x, y, w, h, radius float64) run {
	radius = math.Min(radius, math.Min(w, h)/2)
	if radius <= 0 {
		return run{[]point{{x, y}, {x + w, y}, {x + w, y + h}, {x, y + h}}, true}
	}
	k := radius * (1 - corner)
	r := run{[]point{{x + radius, y}, {x + w - radius, y}}, true}
	r.curve(point{x + w - k, y}, point{x + w, y + k}, point{x + w, y + radius})
	r.at = append(r.at, point{x + w, y + h - radius})
	r.curve(point{x + w, y + h - k}, point{x + w - k, y + h}, point{x + w - radius, y + h})
	r.at = append(r.at, point{x + radius, y + h})
	r.curve(point{x + k, y + h}, point{x, y + h - k}, point{x, y + h - radius})
	r.at = append(r.at, point{x, y + radius})
	r.curve(point{x, y + k}, point{x + k, y}, point{x + radius, y})
	return r
}

// parsePath reads what a Pen writes.
func parsePath(d string) ([]run, error) {
	var runs []run
	var v []float64
	words := strings.Fields(d)
	for i := 0; i < len(words); {
		op, first := words[i][0], words[i][1:]
		need := map[byte]int{'M': 2, 'L': 2, 'C': 6, 'Z': 0}
		n, known := need[op]
		if !known || i+max(n, 1) > len(words) || op != 'M' && len(runs) == 0 {
			return nil, fmt.Errorf("path %q: expected M, L, C or Z with their coordinates at %q", d, words[i])
		}
		v = v[:0]
		for k := range n {
			word := first
			if k > 0 {
				word = words[i+k]
			}
			f, err := strconv.ParseFloat(word, 64)
			if err != nil {
				return nil, fmt.Errorf("path %q: %q is no coordinate", d, word)
			}
			v = append(v, f)
		}
		i += max(n, 1)
		if op == 'M' {
			runs = append(runs, run{at: []point{{v[0], v[1]}}})
			continue
		}
		last := &runs[len(runs)-1]
		switch op {
		case 'L':
			last.at = append(last.at, point{v[0], v[1]})
		case 'C':
			last.curve(point{v[0], v[1]}, point{v[2], v[3]}, point{v[4], v[5]})
		case 'Z':
			last.shut = true
		}
	}
	return runs, nil
}

// dashed cuts runs as SVG's stroke-dasharray does.
func dashed(runs []run, pattern string) []run {
	var dash []float64
	whole := 0.0
	for _, word := range strings.Fields(pattern) {
		f, err := strconv.ParseFloat(word, 64)
		if err != nil || !(f > 0) {
			return runs
		}
		dash, whole = append(dash, f), whole+f
	}
	if whole < 0.5 {
		return runs // finer than can be seen
	}
	var out []run
	for _, r := range runs {
		if r.shut {
			r.at = append(append([]point{}, r.at...), r.at[0])
		}
		long := 0.0
		for i := 1; i < len(r.at); i++ {
			long += r.at[i].sub(r.at[i-1]).length()
		}
		if !(long/whole < maxDashes) {
			return runs
		}
		out = append(out, cut(r.at, dash)...)
	}
	return out
}

// cut is the parts of a line that a pattern of dashes and gaps leaves.
func cut(at []point, dash []float64) []run {
	var out []run
	i, left := 0, dash[0]
	now := []point{at[0]}
	for k := 1; k < len(at); k++ {
		from := at[k-1]
		for {
			rest := at[k].sub(from).length()
			if rest <= left {
				left -= rest
				now = append(now, at[k])
				break
			}
			from = between(from, at[k], left/rest)
			if i%2 == 0 {
				out = append(out, run{at: append(now, from)})
			}
			i++
			left, now = dash[i%len(dash)], []point{from}
		}
	}
	if i%2 == 0 && len(now) > 1 {
		out = append(out, run{at: now})
	}
	return out
}

// outline is the area that a pen of some width covers along runs: a box for every
// piece and what joins them. All turn the same way, so that they fill as one.
func outline(runs []run, p Paint) []run {
	half := cmp.Or(p.Width/2, 0.5)
	var out []run
	add := func(at ...point) {
		area := 0.0
		for i := range at {
			area += at[i].cross(at[(i+1)%len(at)])
		}
		if area < 0 {
			for i, j := 0, len(at)-1; i < j; i, j = i+1, j-1 {
				at[i], at[j] = at[j], at[i]
			}
		}
		out = append(out, run{at, true})
	}
	spot := func(c point) { add(rounded(c.x-half, c.y-half, 2*half, 2*half, half).at...) }
	for _, r := range runs {
		at := distinct(r)
		n := len(at)
		for i := range n {
			last := i == n-1
			if last && !r.shut {
				break
			}
			a, b := at[i], at[(i+1)%n]
			side := normal(a, b).times(half)
			add(a.add(side), b.add(side), b.sub(side), a.sub(side))
			switch {
			case p.Round:
				spot(b)
			case !last || r.shut:
				if i+2 < n || r.shut {
					add(joint(a, b, at[(i+2)%n], half)...)
				}
			}
		}
		if p.Round && n > 0 {
			spot(at[0])
		}
	}
	return out
}

// distinct is a run without points that repeat the one before.
func distinct(r run) []point {
	var at []point
	for _, q := range r.at {
		if len(at) == 0 || q.sub(at[len(at)-1]).length() > 1e-6 {
			at = append(at, q)
		}
	}
	if r.shut && len(at) > 1 && at[0].sub(at[len(at)-1]).length() <= 1e-6 {
		at = at[:len(at)-1]
	}
	return at
}

// normal is the unit vector to the side of a line.
func normal(a, b point) point {
	d := b.sub(a)
	l := d.length()
	if l == 0 {
		return point{}
	}
	return point{-d.y / l, d.x / l}
}

// joint fills the outer side of a corner: to a point, or straight where that
// would stick out far.
func joint(a, b, c point, half float64) []point {
	n, m := normal(a, b), normal(b, c)
	if n.cross(m) > 0 {
		n, m = n.times(-1), m.times(-1)
	}
	tip := []point{b, b.add(n.times(half)), b.add(m.times(half))}
	mid := n.add(m).times(0.5)
	if l := mid.length(); l > 1/miterLimit {
		tip = []point{b, b.add(n.times(half)), b.add(mid.times(half / (l * l))), b.add(m.times(half))}
	}
	return tip
}
