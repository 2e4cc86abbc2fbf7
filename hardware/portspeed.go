package hardware

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// PortSpeed is what a port's speed text means.
type PortSpeed struct {
	Kind  cluster.NetKind // infiniband, ethernet, …; "" when the text names none
	Gen   string          // HDR; "" for other families
	Lanes int             // 0 where the family has no lanes
	// Rate is usable one direction, Nominal what tools print.
	Rate, Nominal unit.Rate
}

// String prints the shortest text that parses back: 4xHDR, 100GbE, 400 Gb/s.
func (p PortSpeed) String() string {
	switch {
	case p.Gen != "":
		return fmt.Sprintf("%dx%s", p.Lanes, p.Gen)
	case p.Kind == cluster.Ethernet:
		return strconv.FormatFloat(p.Rate.Gbps(), 'f', -1, 64) + "GbE"
	}
	return p.Rate.Bits()
}

// bareSpeed is a speed whose unit is left out: bits or bytes is not guessed.
var bareSpeed = lazyre.New(`(?i)^(\d{1,4})\s*(?:gbit|gbits)?$`)

// ParsePortSpeed reads a port speed as tools and people write it: "4xHDR", "4X
// HDR", "NDR" (four lanes), "HDR100" and "NDR200" (two lanes), "100GbE", "25G
// Ethernet", "200 Gb/sec (4X HDR)", "EFA v2", "Slingshot 11", "Omni-Path 100",
// or a plain rate such as "400Gb/s". "400G" alone is refused: bits or bytes?
func ParsePortSpeed(s string) (PortSpeed, error) {
	text := strings.TrimSpace(s)
	if len(text) > 80 {
		return PortSpeed{}, fmt.Errorf("port speed %.20q…: too long", text)
	}
	if open := strings.IndexByte(text, '('); open > 0 && strings.HasSuffix(text, ")") {
		if p, err := ParsePortSpeed(text[open+1 : len(text)-1]); err == nil {
			return p, nil
		}
		text = strings.TrimSpace(text[:open])
	}
	if p, ok := ibSpeed(text); ok {
		return p, nil
	}
	if p, ok := ethernetSpeed(text); ok {
		return p, nil
	}
	if p, ok := namedSpeed(text); ok {
		return p, nil
	}
	if n, ok := strings.CutSuffix(strings.ToUpper(text), "G"); ok { // 400G, as NICs are sold
		text = n + "Gb/s"
	}
	if r, err := unit.ParseRate(text); err == nil && r > 0 {
		return PortSpeed{Rate: r, Nominal: r}, nil
	}
	if m := bareSpeed.FindStringSubmatch(text); m != nil {
		return PortSpeed{}, fmt.Errorf("port speed %q; did you mean %sGbE (Ethernet) or %sGb/s?", s, m[1], m[1])
	}
	return PortSpeed{},
		fmt.Errorf("port speed %q; write 4xHDR, NDR, HDR100, 100GbE, EFA v2 or a rate with a unit such as 400Gb/s", s)
}

// ibSpeed reads "4xHDR", "4X HDR", "HDR", "HDR100".
func ibSpeed(text string) (PortSpeed, bool) {
	t := strings.ToUpper(strings.ReplaceAll(text, " ", ""))
	t = strings.TrimPrefix(strings.TrimPrefix(t, "INFINIBAND"), "IB")
	lanes := 4
	if n, rest, ok := strings.Cut(t, "X"); ok && len(n) <= 2 {
		if v, err := strconv.Atoi(n); err == nil {
			lanes, t = v, rest
		}
	}
	if _, ok := ibByName(t); !ok {
		// HDR100 and NDR200 are two lanes of a four-lane port: the number is Gb/s.
		i := strings.IndexAny(t, "0123456789")
		if i <= 0 {
			return PortSpeed{}, false
		}
		g, ok := ibByName(t[:i])
		v, err := strconv.Atoi(t[i:])
		if !ok || err != nil || v <= 0 {
			return PortSpeed{}, false
		}
		lanes, t = int(float64(v)/g.Lane+0.5), g.Name
	}
	rate := InfiniBandRate(t, lanes)
	if rate == 0 {
		return PortSpeed{}, false
	}
	g, _ := ibByName(t)
	return PortSpeed{
		Kind: cluster.InfiniBand, Gen: g.Name, Lanes: lanes, Rate: rate, Nominal: infiniBandNominal(t, lanes),
	}, true
}

// ethernetSpeed reads "100GbE", "25 GbE", "10G Ethernet", "Ethernet 25G", "1GBASE-T".
func ethernetSpeed(text string) (PortSpeed, bool) {
	t := strings.ToLower(strings.ReplaceAll(text, " ", ""))
	num := ""
	for _, suffix := range []string{"gbe", "gige", "gethernet", "gbase-t"} {
		if n, ok := strings.CutSuffix(t, suffix); ok {
			num = n
		}
	}
	if n, ok := strings.CutPrefix(t, "ethernet"); ok && num == "" {
		num = strings.TrimSuffix(n, "g")
	}
	if num == "" {
		return PortSpeed{}, false
	}
	v, err := strconv.ParseFloat(num, 64)
	if err != nil || !(v > 0 && v <= 10000) {
		return PortSpeed{}, false
	}
	r := unit.Rate(v) * unit.Gbps
	return PortSpeed{Kind: cluster.Ethernet, Rate: r, Nominal: r}, true
}

// namedSpeed reads the port speed of a maker's network: "EFA v2", "Slingshot 11".
func namedSpeed(text string) (PortSpeed, bool) {
	kinds := map[string]cluster.NetKind{
		"efa": cluster.EFA, "slingshot": cluster.Slingshot, "omni-path": cluster.OmniPath, "tcpx": cluster.TCPX,
	}
	key := func(s string) string {
		s = strings.ToLower(s)
		for _, cut := range []string{" ", "-", "_", "."} {
			s = strings.ReplaceAll(s, cut, "")
		}
		return strings.Replace(s, "omnipath", "opa", 1)
	}
	want := key(text)
	for _, r := range networks() {
		if r.Link > 0 && key(r.Name) == want {
			return PortSpeed{Kind: kinds[r.Family], Rate: r.Link, Nominal: r.Link}, true
		}
	}
	return PortSpeed{}, false
}
