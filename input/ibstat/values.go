package ibstat

import (
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// keyValue splits "Base lid:	 59" into a lower-case key and its value.
func keyValue(line string) (key, value string, ok bool) {
	key, value, ok = strings.Cut(strings.TrimSpace(line), ":")
	return strings.ToLower(strings.TrimSpace(key)), strings.TrimSpace(value), ok
}

// inQuotes returns the adapter's name in 'mlx5_0' at the start of s, and what
// follows; "" when there is none or it cannot be a device's name.
func inQuotes(s string) (name, rest string) {
	if !strings.HasPrefix(s, "'") {
		return "", s
	}
	name, rest, ok := strings.Cut(s[1:], "'")
	if !ok || !deviceName(name) {
		return "", s
	}
	return strings.Clone(name), rest
}

// deviceName reports letters, digits and -_.: within the kernel's limit.
func deviceName(s string) bool {
	if s == "" || len(s) > maxName {
		return false
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', strings.IndexByte("-_.:", c) >= 0:
		default:
			return false
		}
	}
	return true
}

// state reads Active, 4: ACTIVE and PORT_ACTIVE (4).
func state(s string) cluster.State {
	s = strings.ToLower(s)
	switch {
	case strings.Contains(s, "down"):
		return cluster.Down
	case strings.Contains(s, "init"), strings.Contains(s, "armed"), strings.Contains(s, "defer"):
		return cluster.Init
	case strings.Contains(s, "active"):
		return cluster.Up
	}
	return cluster.StateUnknown
}

// layer writes the link layer in full; ibstatus and simulators say IB.
func layer(s string) string {
	switch strings.ToLower(s) {
	case "infiniband", "ib":
		return "InfiniBand"
	case "ethernet":
		return "Ethernet"
	}
	return ""
}

// rate is a port's rate as read.
func rate(r unit.Rate, source string) cluster.Fact[unit.Rate] {
	if r == 0 {
		return cluster.Fact[unit.Rate]{}
	}
	return cluster.FromRead(r, source)
}

// lid reads 59 or 0x3b; 0 means none.
func lid(s string) int {
	v, err := strconv.ParseUint(s, 0, 16)
	if err != nil {
		return 0
	}
	return int(v)
}

// mtu reads "4096 (5)".
func mtu(s, source string) cluster.Fact[int] {
	word, _, _ := strings.Cut(s, " ")
	v, err := strconv.Atoi(word)
	if err != nil || v < 256 || v > 1<<16 {
		return cluster.Fact[int]{}
	}
	return cluster.FromRead(v, source)
}

// word bounds a value that is kept as text: one word, printable, short.
func word(s string) string {
	s, _, _ = strings.Cut(s, " ")
	if len(s) > maxName {
		s = s[:maxName]
	}
	for i := range len(s) {
		if s[i] < 0x21 || s[i] > 0x7e {
			return ""
		}
	}
	return strings.Clone(s)
}
