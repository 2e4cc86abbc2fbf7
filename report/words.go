package report

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// field is one thing known of a device: as the tree says it, with the origin of its figure, and as nodes are compared
// by it.
type field struct {
	text   string // "" where it is only compared
	what   string // it is; "" where it is not compared
	value  string
	origin cluster.Origin
	bad    bool // something is wrong with it
	// bare says that nobody knows where it came from: it stands behind the origin
	// of the others, which would else seem to be its own.
	bare bool
}

// fieldList collects fields, leaving empty ones out.
type fieldList []field

func (l *fieldList) say(text string)                      { l.figure(text, cluster.Unknown) }
func (l *fieldList) figure(text string, o cluster.Origin) { l.add(field{text: text, origin: o}) }
func (l *fieldList) warn(text string)                     { l.add(field{text: text, bad: true}) }
func (l *fieldList) compare(what, value string)           { l.add(field{what: what, value: value}) }

// fact is said as it is compared.
func (l *fieldList) fact(what, value string, o cluster.Origin) {
	l.add(field{text: value, what: what, value: value, origin: o})
}

func (l *fieldList) add(f field) {
	if f.text != "" || f.value != "" {
		*l = append(*l, f)
	}
}

// says reports whether a field begins with a word: Slingshot is said by Slingshot
// Cassini.
func (l fieldList) says(word string) bool {
	return word != "" && slices.ContainsFunc(l, func(f field) bool {
		return len(f.text) >= len(word) && strings.EqualFold(f.text[:len(word)], word)
	})
}

// texts prints the fields. When all figures have one origin it is said once, at
// the end of those that can have it.
func (l fieldList) texts(s style) []string {
	l = slices.Clone(l)
	behind := map[bool]int{true: 1}
	slices.SortStableFunc(l, func(a, b field) int { return behind[a.bare] - behind[b.bare] })
	common, mixed, last := cluster.Unknown, false, 0
	for i, f := range l {
		if !f.bare {
			last = i
		}
		if f.origin != cluster.Unknown {
			mixed = mixed || common != cluster.Unknown && common != f.origin
			common = f.origin
		}
	}
	out := make([]string, len(l))
	for i, f := range l {
		out[i] = either(f.bad, s.red(f.text), f.text)
		if !mixed {
			f.origin = cluster.Unknown
			if i == last {
				f.origin = common
			}
		}
		if f.origin != cluster.Unknown {
			out[i] += s.dim(" [" + f.origin.String() + "]")
		}
	}
	return out
}

// when is a text where a condition holds, else nothing.
func when(holds bool, text string) string { return either(holds, text, "") }

// either is one text where a condition holds, else another.
func either(holds bool, yes, no string) string {
	if holds {
		return yes
	}
	return no
}

// andMore says how many more things there are than those named.
func andMore(n int, what string) string { return when(n > 0, fmt.Sprintf(" and %d %s", n, what)) }

// known is a text where a condition holds, else a dash.
func known(is bool, text string) string { return cmp.Or(when(is, text), "-") }

// some is a figure, or nothing where there is none.
func some[T cmp.Ordered](figure T) string {
	var none T
	return when(figure > none, fmt.Sprint(figure))
}

// orDash is a figure, or a dash where there is none.
func orDash[T cmp.Ordered](figure T) string { return cmp.Or(some(figure), "-") }

// grouped is things by what they have in common.
type grouped[K comparable, V any] struct {
	order []K // in which they came
	of    map[K][]V
}

func (g *grouped[K, V]) put(key K, thing V) {
	if g.of == nil {
		g.of = map[K][]V{}
	}
	if g.of[key] == nil {
		g.order = append(g.order, key)
	}
	g.of[key] = append(g.of[key], thing)
}

// all are the groups in the order of the first thing of each.
func (g *grouped[K, V]) all() iter.Seq2[K, []V] {
	return func(yield func(K, []V) bool) {
		for _, key := range g.order {
			if !yield(key, g.of[key]) {
				return
			}
		}
	}
}

// lists are the groups alone.
func (g *grouped[K, V]) lists() (list [][]V) {
	for _, key := range g.order {
		list = append(list, g.of[key])
	}
	return list
}

// pcieRates are the transfer rates of PCIe in GT/s, by generation.
var pcieRates = []float64{2.5, 5, 8, 16, 32, 64, 128}

// linkName says what a link inside a node is and how it is trained: "PCIe 5.0
// x16", "NVLink ×4", "C2C".
func linkName(l *cluster.Link) string {
	switch l.Kind {
	case cluster.PCIe:
		s := "PCIe"
		if older := slices.Index(pcieRates, l.GTs); older >= 0 {
			s += fmt.Sprintf(" %d.0", older+1)
		} else if l.GTs > 0 {
			s += fmt.Sprintf(" %g GT/s", l.GTs)
		}
		return s + when(l.Lanes > 0, fmt.Sprintf(" x%d", l.Lanes))
	case cluster.NVLink, cluster.XGMI:
		return linkNames[l.Kind] + when(l.Lanes > 1, fmt.Sprintf(" ×%d", l.Lanes))
	}
	return cmp.Or(linkNames[l.Kind], "link")
}

var linkNames = map[cluster.LinkKind]string{
	cluster.NVLink: "NVLink", cluster.XGMI: "xGMI", cluster.C2C: "C2C", cluster.SMP: "CPU link", cluster.OnDie: "on die",
	cluster.Gaudi: "RoCE on board", cluster.Direct: "direct link",
}

// trainedLow says by how much a link is trained below what both ends could do, or
// nothing.
func trainedLow(l *cluster.Link) string {
	var low []string
	if l.Lanes > 0 && l.MaxLanes > l.Lanes {
		low = append(low, fmt.Sprintf("x%d of x%d", l.Lanes, l.MaxLanes))
	}
	if l.GTs > 0 && l.MaxGTs > l.GTs {
		low = append(low, fmt.Sprintf("%g of %g GT/s", l.GTs, l.MaxGTs))
	}
	return when(len(low) > 0, "trained "+strings.Join(low, " and "))
}

// linkFields says everything about a link.
func (l *fieldList) link(k *cluster.Link) {
	l.add(field{text: linkName(k), what: "link", value: strings.Join(nonEmpty(linkName(k), trainedLow(k)), ", ")})
	l.warn(trainedLow(k))
	if k.Rate.Known() {
		l.figure(k.Rate.Value.String(), k.Rate.Origin)
	}
	if k.Duplex > 0 {
		l.say("advertised " + k.Duplex.String() + " duplex")
	}
	if k.OneWay {
		l.say("one way")
	}
}

// shortModel is a model without its maker, for places with little room.
func shortModel(m string) string {
	for _, maker := range []string{
		"NVIDIA ", "Nvidia ", "Tesla ", "AMD ", "Instinct ", "Intel(R) ", "Intel ", "Mellanox ", "Technologies ",
	} {
		m = strings.TrimPrefix(m, maker)
	}
	m = strings.Join(strings.Fields(noise.ReplaceAllString(m, " ")), " ")
	if m == "Processor" {
		return ""
	}
	return m
}

// noise is what processors add to their names.
var noise = lazyre.New(`\((R|r|TM|tm)\)|\bCPU\b|@ [0-9.]+ ?GHz|[0-9]+-Core Processor`)

var sizeInName = lazyre.New(`[- ]?\b[0-9]+ ?[GT]i?B\b| HBM[0-9]\w*`)

// modelOnly is a model without its maker and without the memory that is said
// beside it: A100-SXM4 for NVIDIA A100-SXM4-40GB.
func modelOnly(m string) string {
	short := shortModel(m)
	return cmp.Or(sizeInName.ReplaceAllString(short, ""), short)
}

var netNames = map[cluster.NetKind]string{
	cluster.InfiniBand: "InfiniBand", cluster.RoCE: "RoCE", cluster.Ethernet: "Ethernet", cluster.EFA: "EFA",
	cluster.Slingshot: "Slingshot", cluster.OmniPath: "Omni-Path", cluster.TCPX: "GPUDirect-TCPX",
	cluster.TCPXO: "GPUDirect-TCPXO", cluster.NVLinkNet: "NVLink network",
}

// netName is how a family of networks is written.
func netName(k cluster.NetKind) string {
	return cmp.Or(netNames[k], string(k))
}

// nvlinkName is NVLink with its generation, which the catalogue has for the GPU's compute capability.
func nvlinkName(t *cluster.NodeType, gpu int) string {
	if g := t.Devices[gpu].GPU; g != nil {
		return cmp.Or(hardware.ChipLink(fmt.Sprintf("sm%d", g.SM)).Name, "NVLink")
	}
	return "NVLink"
}

// memory prints an amount of memory as it is sold: whole GiB or whole GB, and
// what is neither (a card with its reserve taken off) in GiB with a decimal.
func memory(b unit.Bytes) string {
	switch {
	case b < unit.GiB || b%unit.GiB == 0:
		return b.String()
	case b%unit.GB == 0:
		return strconv.FormatInt(int64(b/unit.GB), 10) + " GB"
	}
	return strconv.FormatFloat(math.Round(float64(b)/float64(unit.GiB)*10)/10, 'f', -1, 64) + " GiB"
}
