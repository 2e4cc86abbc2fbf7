package ibnet

import (
	"strings"

	"busbar.dev/cluster"
)

// linkLine is one line of iblinkinfo, cut into parts. Zero parts were not there.
type linkLine struct {
	guid     uint64 // of the port; of the switch when it has one for all
	desc     string // with -l only
	named    bool   // a description is there, if an empty one
	lid, num int
	state    cluster.State
	is       width
	could    width // the larger parts that "Could be" names
	notes    int
	far      struct {
		guid     uint64
		desc     string
		lid, num int
	}
}

// parseLink reads
//
//	2    1[  ] ==( 4X          10.0 Gbps Active/  LinkUp)==>       3    1[  ] "node1 HCA-1" ( )
//	2    8[  ] ==(                Down/ Polling)==>             [  ] "" ( )
//	0x0002c90300300101     22    1[  ] ==( 4X … )==>       4    4[  ] "leaf4" (Could be 12X )
//	0x0002c90300300101 "   node16 mlx5_0"     22    1[  ] ==( … )==>  0x0002c90300100004      4    4[  ] "leaf4" ( )
func parseLink(b string) (l linkLine, ok bool) {
	left, rest, ok := strings.Cut(b, "==(")
	if !ok {
		return l, false
	}
	mid, right, ok := strings.Cut(rest, ")==>")
	if !ok || !l.near(left) || !l.training(mid) {
		return l, false
	}
	l.farEnd(right)
	return l, true
}

// near reads what stands before the arrow.
func (l *linkLine) near(b string) bool {
	b = strings.TrimSpace(b)
	if strings.HasPrefix(b, "0x") {
		var ok bool
		if l.guid, b, ok = hex(b); !ok {
			return false
		}
		b = strings.TrimLeft(b, " \t")
	}
	if len(b) > 0 && b[0] == '"' {
		end := strings.LastIndexByte(b, '"')
		if end == 0 {
			return false
		}
		l.desc, l.named, b = b[1:end], true, b[end+1:]
	}
	if l.lid, l.num, b = lidPort(b); l.num < 1 {
		return false
	}
	return len(b) > 0 && b[0] == '['
}

// lidPort reads "  22    1" before the bracket that holds a chassis' port label.
func lidPort(b string) (lid, num int, rest string) {
	lid, rest = number(strings.TrimLeft(b, " \t"))
	num, rest = number(strings.TrimLeft(rest, " \t"))
	return max(lid, 0), num, rest
}

// training reads what stands inside the arrow.
func (l *linkLine) training(b string) bool {
	state, _, ok := strings.Cut(b, "/")
	if !ok {
		return false
	}
	word, rest := field(state)
	if w, ok := parseWidth(word); ok {
		l.is = w
		word, rest = field(rest)
		l.is.speed = speedSignalled(word)
		word, rest = field(rest) // Gbps
		if word != "Gbps" {
			return false
		}
		word, rest = field(rest)
		if word == "(FDR10)" {
			l.is.speed = fdr10
			word, _ = field(rest)
		}
	}
	switch word {
	case "Active":
		l.state = cluster.Up
	case "Down":
		l.state = cluster.Down
	case "Initialize", "Init", "Armed":
		l.state = cluster.Init
	}
	return true
}

// farEnd reads what stands behind the arrow. A port with nothing on it has an
// empty bracket and an empty name there.
func (l *linkLine) farEnd(b string) {
	b = strings.TrimSpace(b)
	if strings.HasPrefix(b, "0x") {
		g, rest, ok := hex(b)
		if !ok {
			return
		}
		l.far.guid, b = g, rest
	}
	lid, num, _ := lidPort(b)
	first, last := strings.IndexByte(b, '"'), strings.LastIndexByte(b, '"')
	if num < 1 || first < 0 || last <= first {
		return
	}
	l.far.lid, l.far.num = lid, num
	l.far.desc = b[first+1 : last]
	l.couldBe(b[last+1:])
}

// couldBe reads the remarks behind the neighbour's name: iblinkinfo adds one for
// the width and one for the speed when both ends support more than is in use, so
// that no remark means that the link runs as fast as it can.
func (l *linkLine) couldBe(b string) {
	l.could = l.is
	for {
		var ok bool
		if _, b, ok = strings.Cut(b, "Could be "); !ok {
			return
		}
		l.notes++
		word, _ := field(b)
		word = strings.TrimRight(word, ")")
		if word == "FDR10" {
			l.could.speed = fdr10
		} else if s := speedSignalled(word); s != noSpeed {
			l.could.speed = s
		} else if w, ok := parseWidth(word); ok {
			l.could.lanes = w.lanes
		}
	}
}
