package ncclxml

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// number reads a decimal number, or returns other.
func number(s string, other int) int {
	n, err := strconv.Atoi(strings.TrimSpace(s))
	if err != nil {
		return other
	}
	return n
}

// devOf is the dev attribute, -1 when absent or no index.
func devOf(e *element) int {
	if n := number(e.get("dev"), -1); n >= 0 && n < 1<<20 {
		return n
	}
	return -1
}

// tri reads 0 or 1; anything else is unknown.
func tri(s string) cluster.Tri {
	switch s {
	case "0":
		return cluster.No
	case "1":
		return cluster.Yes
	}
	return cluster.Maybe
}

// hexText is a PCI id without 0x, empty when it is no number.
func hexText(s string) string {
	s = strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "0x")
	if len(s) > 8 || strings.Trim(s, "0123456789abcdef") != "" {
		return ""
	}
	return s
}

// shorten makes a value fit for a message.
func shorten(s string) string {
	if len(s) > 60 {
		return s[:57] + "..."
	}
	return s
}

// indexIn is the number behind a stem, -1 when there is none.
func indexIn(name, stem string) int {
	rest, ok := strings.CutPrefix(name, stem)
	n, err := strconv.Atoi(rest)
	if !ok || err != nil || n < 0 {
		return -1
	}
	return n
}

// speeds are the spellings of link_speed that NCCL knows, each a prefix of the
// value it finds; everything else it counts as 8 GT/s.
var speeds = []string{
	"2.5 GT/s", "5 GT/s", "8 GT/s", "16 GT/s", "32 GT/s",
	"5.0 GT/s PCIe", "8.0 GT/s PCIe", "16.0 GT/s PCIe", "32.0 GT/s PCIe", "64.0 GT/s PCIe",
}

// speed reads link_speed in GT/s, 0 when unknown, and warns where NCCL itself
// would misread it.
func (b *builder) speed(e *element) float64 {
	s := e.get("link_speed")
	if s == "" || strings.HasPrefix(s, "Unknown") {
		return 0
	}
	figure, rest, _ := strings.Cut(s, " ")
	v, err := strconv.ParseFloat(figure, 64)
	if err != nil || !(v > 0 && v <= 256) || !strings.HasPrefix(rest, "GT/s") {
		b.warnf(e.line, e.get("busid"), "link_speed %q; expected such as \"16.0 GT/s PCIe\": left unknown", shorten(s))
		return 0
	}
	for _, k := range speeds {
		if strings.HasPrefix(s, k) {
			return v
		}
	}
	if v != 8 {
		b.warnf(e.line, e.get("busid"),
			"NCCL does not know link_speed %q and counts the link as 8 GT/s; write \"%.1f GT/s PCIe\"", shorten(s), v)
	}
	return v
}

// maxCPU bounds the processors of an affinity mask.
const maxCPU = 1 << 14

// cpuList turns a mask of 32-bit words, the highest first, into a list of
// ranges: 0000ffff,00000001 is 0,32-47.
func cpuList(mask string) (string, error) {
	words := strings.Split(mask, ",")
	if len(words) > maxCPU/32 {
		return "", fmt.Errorf("%d words; expected at most %d", len(words), maxCPU/32)
	}
	var out strings.Builder
	first := -1
	flush := func(end int) {
		if first < 0 {
			return
		}
		if out.Len() > 0 {
			out.WriteByte(',')
		}
		out.WriteString(strconv.Itoa(first))
		if end > first {
			fmt.Fprintf(&out, "-%d", end)
		}
		first = -1
	}
	for w := range words {
		v, err := strconv.ParseUint(strings.TrimSpace(words[len(words)-1-w]), 16, 32)
		if err != nil {
			return "", fmt.Errorf("word %q; expected eight hexadecimal digits", shorten(words[len(words)-1-w]))
		}
		for i := range 32 {
			cpu := w*32 + i
			switch {
			case v>>i&1 == 0:
				flush(cpu - 1)
			case first < 0:
				first = cpu
			}
		}
	}
	flush(len(words)*32 - 1)
	return out.String(), nil
}

// cpuMask is the opposite of cpuList.
func cpuMask(list string) (string, error) {
	var words []uint32
	for _, r := range strings.Split(list, ",") {
		lo, hi, ranged := strings.Cut(strings.TrimSpace(r), "-")
		a, err := strconv.Atoi(lo)
		z := a
		if err == nil && ranged {
			z, err = strconv.Atoi(hi)
		}
		if err != nil || a < 0 || z < a || z >= maxCPU {
			return "", fmt.Errorf("cores %q; expected a list such as 0-15,64-79", shorten(list))
		}
		for len(words) <= z/32 {
			words = append(words, 0)
		}
		for c := a; c <= z; c++ {
			words[c/32] |= 1 << (c % 32)
		}
	}
	text := make([]string, len(words))
	for i, w := range words {
		text[len(words)-1-i] = fmt.Sprintf("%08x", w)
	}
	return strings.Join(text, ","), nil
}
