package ibnet

import (
	_ "embed" // for the speeds
	"fmt"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/internal/csvtable"
	"busbar.dev/unit"
)

//go:embed speeds.csv
var speedTable string

// speed is a lane's signalling generation, and what a lane of it carries.
type speed struct {
	Name string  `csv:"name"`
	Gbps float64 `csv:"gbps"`
	Also string  `csv:"also"`
}

// speeds are by what the tools call them.
var speeds = sync.OnceValue(func() map[string]*speed {
	of := map[string]*speed{}
	for _, s := range csvtable.Must[speed]("speeds.csv", speedTable) {
		of[s.Name], of[s.Also] = &s, &s
	}
	return of
})

// width is a number of lanes and their speed; zero parts are unknown.
type width struct {
	lanes int
	speed *speed
}

func (w width) known() bool { return w.lanes > 0 && w.speed != nil }

// rate is 0 when a part is unknown.
func (w width) rate() unit.Rate {
	if !w.known() {
		return 0
	}
	return unit.Rate(float64(w.lanes)*w.speed.Gbps) * unit.Gbps
}

// String is "4xHDR", or "" when a part is unknown.
func (w width) String() string {
	if !w.known() {
		return ""
	}
	return fmt.Sprintf("%dx%s", w.lanes, w.speed.Name)
}

func (w width) fact(source string) cluster.Fact[unit.Rate] { return board.Fact(w.rate(), source) }

// slower reports whether w carries less than v, both known.
func (w width) slower(v width) bool {
	return w.known() && w.rate() < v.rate()
}

// or is what two ends of a cable say together: the slower, where one knows more
// the better known.
func (w width) or(v width) width {
	if v.slower(w) || !w.known() && (v.known() || w.lanes == 0) {
		return v
	}
	return w
}

// parseWidth reads "4xHDR", "4x53.125", or "4x" and "4X" alone. Unknown
// parts ("4x???") stay zero.
func parseWidth(s string) (width, bool) {
	x := strings.IndexAny(s, "xX")
	n := num.Or(s[:max(x, 0)], 1, 12, 0)
	if n == 0 {
		return width{}, false
	}
	return width{n, speeds()[s[x+1:]]}, true
}
