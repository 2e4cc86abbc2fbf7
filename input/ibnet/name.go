package ibnet

import (
	"strconv"
	"strings"
	"unicode"

	"busbar.dev/internal/lazyre"
)

// makersText marks a description as the maker's text rather than a name somebody gave.
var makersText = lazyre.New(`^MT\d{4}|Mellanox|Technologies|Voltaire|ConnectX|Infini[sS]cale|QLogic|NVIDIA`)

// partNumber begins with MT and at least four digits.
var partNumber = lazyre.New(`^MT\d{4}`)

// isAggregation reports the description of a SHARP aggregation node: a CA inside
// a switch that sums packets on their way.
func isAggregation(desc string) bool { return strings.Contains(desc, "Aggregation Node") }

// hostOf splits an adapter's description into host name and device label:
// "a08-c01 mlx5_5", "node01 HCA-1", "Hca0". The host is "" when the description
// holds no name.
func hostOf(desc string) (host, label string) {
	first, rest, two := strings.Cut(desc, " ")
	rest = strings.TrimSpace(rest)
	switch {
	case desc == "":
		return "", ""
	case two && deviceLabel.MatchString(rest) && !partNumber.MatchString(first):
		return first, rest
	case makersText.MatchString(desc):
		return "", ""
	case !two:
		return desc, ""
	case !strings.Contains(rest, " "):
		return first, rest
	}
	return "", ""
}

// deviceLabel is mlx5_0, mlx5_bond_0, hfi1_0 and HCA-1.
var deviceLabel = lazyre.New(`^(?:HCA-|[^ \t]+_)\d+$`)

// switchOf splits a switch's description into name and model. Managed switches
// say "MF0;A09-IBLEAF-04:MQM9701/U1"; a chip in a chassis says
// "MF0;core1:CS7500/L01/U1" and keeps its place in the name, since the others
// share the rest. The name is "" when the description is the maker's text.
func switchOf(desc string) (name, model string) {
	if _, rest, ok := strings.Cut(desc, ";"); ok {
		if at := strings.LastIndexByte(rest, ':'); at > 0 {
			name, model = rest[:at], rest[at+1:]
			var unit string
			model, unit, _ = strings.Cut(model, "/")
			if unit != "" && unit != "U1" {
				name += "/" + unit
			}
			return name, model
		}
	}
	if !makersText.MatchString(desc) {
		return desc, ""
	}
	first, _, _ := strings.Cut(desc, " ")
	return "", first
}

// plain is a description as it may be printed: without control characters and
// outer blanks, in valid UTF-8, of bounded length (the standard allows 64 bytes).
// It does not hold on to the line it comes from.
func plain(s string) string {
	const most = 256
	if len(s) > most {
		s = s[:most]
	}
	s = strings.Clone(strings.TrimSpace(s))
	return strings.Map(func(c rune) rune {
		if unicode.IsControl(c) || c == unicode.ReplacementChar {
			return '?'
		}
		return c
	}, s)
}

// names hands every name out once.
type names map[string]int

// freeName returns name, or name and guid, or name and a number, whichever is free.
func (n names) freeName(name, guid string) string {
	if guid != "" && n[name] > 0 {
		name += "-" + guid
	}
	for n[name] > 0 {
		n[name]++
		name += "~" + strconv.Itoa(n[name])
	}
	n[name]++
	return name
}
