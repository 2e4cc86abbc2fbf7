package ibnet

import (
	"strconv"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// speed is a lane's signalling generation.
type speed uint8

const (
	noSpeed speed = iota
	sdr
	ddr
	qdr
	fdr10
	fdr
	edr
	hdr
	ndr
	xdr
)

// lane is what one lane carries, after 8b/10b (to QDR) or 64b/66b encoding, and
// what iblinkinfo calls it: the signalling rate in Gb/s. Source: InfiniBand
// Architecture Specification volume 1, PortInfo LinkSpeedActive and
// LinkSpeedExtActive; HDR and later are quoted by their net rate.
var lane = [...]struct {
	name   string
	signal string
	gbps   float64
}{
	sdr:   {"SDR", "2.5", 2},
	ddr:   {"DDR", "5.0", 4},
	qdr:   {"QDR", "10.0", 8},
	fdr10: {"FDR10", "10.3125", 10},
	fdr:   {"FDR", "14.0625", 13.64},
	edr:   {"EDR", "25.78125", 25},
	hdr:   {"HDR", "53.125", 50},
	ndr:   {"NDR", "106.25", 100},
	xdr:   {"XDR", "212.5", 200},
}

func speedNamed(b string) speed {
	for s := sdr; s <= xdr; s++ {
		if b == lane[s].name {
			return s
		}
	}
	return noSpeed
}

func speedSignalled(b string) speed {
	for s := sdr; s <= xdr; s++ {
		if b == lane[s].signal {
			return s
		}
	}
	return noSpeed
}

// width is a number of lanes and their speed; zero parts are unknown.
type width struct {
	lanes uint8
	speed speed
}

func (w width) known() bool { return w.lanes > 0 && w.speed != noSpeed }

func (w width) rate() unit.Rate {
	return unit.Rate(float64(w.lanes)*lane[w.speed].gbps) * unit.Gbps
}

// String is "4xHDR", or "" when a part is unknown.
func (w width) String() string {
	if !w.known() {
		return ""
	}
	return strconv.Itoa(int(w.lanes)) + "x" + lane[w.speed].name
}

func (w width) fact(source string) cluster.Fact[unit.Rate] {
	if !w.known() {
		return cluster.Fact[unit.Rate]{}
	}
	return cluster.FromRead(w.rate(), source)
}

// slower reports whether w carries less than v, both known.
func (w width) slower(v width) bool {
	return w.known() && v.known() && w.rate() < v.rate()
}

// or is what two ends of a cable say together: the slower, where one knows more
// the better known.
func (w width) or(v width) width {
	if v.slower(w) || !w.known() && (v.known() || w.lanes == 0) {
		return v
	}
	return w
}

// parseWidth reads "4xHDR", or the "4x" and "4X" before a separate speed. Unknown
// parts ("4x???") stay zero.
func parseWidth(b string) (width, bool) {
	n, rest := number(b)
	if n < 1 || n > 12 || len(rest) == 0 || rest[0] != 'x' && rest[0] != 'X' {
		return width{}, false
	}
	return width{uint8(n), speedNamed(rest[1:])}, true
}

// number reads the decimal digits at the start of b; -1 when there is none or
// too many.
func number(b string) (int, string) {
	n, i := 0, 0
	for i < len(b) && b[i] >= '0' && b[i] <= '9' {
		if i >= 9 {
			return -1, b
		}
		n = n*10 + int(b[i]-'0')
		i++
	}
	if i == 0 {
		return -1, b
	}
	return n, b[i:]
}

// hex reads the hexadecimal digits at the start of b, with or without 0x; ok is
// false when there is none or more than sixteen.
func hex(b string) (v uint64, rest string, ok bool) {
	if len(b) > 1 && b[0] == '0' && (b[1] == 'x' || b[1] == 'X') {
		b = b[2:]
	}
	i := 0
	for ; i < len(b); i++ {
		c := b[i]
		switch {
		case c >= '0' && c <= '9':
			c -= '0'
		case c >= 'a' && c <= 'f':
			c -= 'a' - 10
		case c >= 'A' && c <= 'F':
			c -= 'A' - 10
		default:
			return v, b[i:], i > 0
		}
		if i >= 16 {
			return 0, b, false
		}
		v = v<<4 | uint64(c)
	}
	return v, b[i:], i > 0
}

// nicGUID is the form in which the readers of hosts keep the GUIDs of NICs.
func nicGUID(g uint64) string {
	if g == 0 {
		return ""
	}
	return "0x" + guidText(g)
}

// guidText is the form in which the GUIDs of switches are kept.
func guidText(g uint64) string {
	if g == 0 {
		return ""
	}
	const digits = "0123456789abcdef"
	var b [16]byte
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = digits[g&15]
		g >>= 4
	}
	return string(b[:])
}
