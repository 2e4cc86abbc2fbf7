package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
)

// odd lists what is worth a look.
func (b *builder) odd() {
	b.oddRanks()
	b.oddNICs()
	b.oddPairs()
	b.oddNet()
	b.oddRings()
}

func (b *builder) say(id string, line int, format string, args ...any) {
	b.Odd = append(b.Odd, Odd{id, fmt.Sprintf(format, args...), line})
}

// NICName is what to call a NIC.
func (r *Run) NICName(i int) string {
	if i < 0 || i >= len(r.NICs) {
		return "?"
	}
	if n := r.NICs[i]; n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("NIC %d", r.NICs[i].Dev)
}

func (b *builder) oddRanks() {
	if n := len(b.Unseen); n > 0 {
		b.say("ranks-missing", 0, "%d of %d ranks wrote no line of this communicator (%s): their ends of the connections "+
			"are not known", n, b.NRanks, words.Numbers(b.Unseen))
	}
	cut, missing := 0, 0
	for _, c := range b.Channels {
		if c.Cut {
			cut++
		}
	}
	for i := range b.Hops {
		if b.Hops[i].Transport == "" {
			missing++
		}
	}
	if cut > 0 {
		b.say("rings-cut", 0, "%d rings are cut in the log and could not be put together: loads are of the part that is "+
			"there", cut)
	}
	switch {
	case missing == 0 || len(b.Unseen) > 0:
	case missing == b.treeOnly():
		b.say("trees-unconnected", 0, "the trees are not connected yet: NCCL since 2.22 does so when a collective first "+
			"takes them")
	default:
		b.say("connections-missing", 0, "%d of %d hops have no line that says how they are connected", missing, len(b.Hops))
	}
}

// treeOnly counts hops that only trees have.
func (b *builder) treeOnly() int {
	n := 0
	for i := range b.Hops {
		if b.Hops[i].Tree && !b.Hops[i].Ring {
			n++
		}
	}
	return n
}

// oddNICs finds NICs that carry more than their share, hosts where one idles
// while another has two channels, and hosts that differ.
func (b *builder) oddNICs() {
	idle := map[string][]string{}
	uneven := map[string][]string{}
	for h := range b.Hosts {
		var used, free []int
		least, most := 0.0, 0.0
		shared := -1
		for _, i := range b.Hosts[h].NICs {
			w := b.weight(&b.NICs[i])
			if w == 0 && b.NICs[i].Hops == 0 {
				free = append(free, i)
				continue
			}
			used = append(used, i)
			if least == 0 || w < least {
				least = w
			}
			if w > most {
				most = w
				shared = i
			}
		}
		if len(free) > 0 && shared >= 0 && len(b.NICs[shared].Channels) > 1 {
			text := fmt.Sprintf("%s carries channels %s and none uses %s", b.NICName(shared),
				words.Numbers(b.NICs[shared].Channels), b.names(free))
			idle[text] = append(idle[text], b.Hosts[h].Name)
		}
		if len(used) > 1 && least > 0 && most > 1.25*least {
			text := fmt.Sprintf("%s carries %.1f times what the least used NIC does", b.NICName(shared), most/least)
			uneven[text] = append(uneven[text], b.Hosts[h].Name)
		}
	}
	b.saySorted("nic-idle", idle, "; storage NICs are left out on purpose, others are lost bandwidth (NCCL_IB_HCA, "+
		"distance to the GPUs)")
	b.saySorted("nic-uneven", uneven, ": the busiest NIC decides")
}

func (b *builder) saySorted(id string, texts map[string][]string, tail string) {
	keys := slices.Sorted(maps.Keys(texts))
	for i, k := range keys {
		if i == 4 {
			b.say(id, 0, "and %d more like that", len(keys)-i)
			return
		}
		b.say(id, 0, "%s: %s%s", cluster.FormatHosts(texts[k]), k, tail)
	}
}

func (b *builder) names(list []int) string {
	var out []string
	for _, i := range list {
		out = append(out, b.NICName(i))
	}
	return strings.Join(out, ", ")
}

// oddPairs finds pairs of a host that talk through host memory or the network
// where others talk directly.
func (b *builder) oddPairs() {
	direct := map[int]bool{}
	type pair struct{ a, b int }
	other := map[string]map[pair]bool{}
	line := map[string]int{}
	p2p := false
	for i := range b.Hops {
		h := &b.Hops[i]
		at := b.Ranks[h.From].Host
		if at < 0 || at != b.Ranks[h.To].Host {
			continue
		}
		switch h.Transport {
		case "P2P":
			direct[at], p2p = true, true
		case "SHM", "NET":
			if other[h.Transport] == nil {
				other[h.Transport], line[h.Transport] = map[pair]bool{}, h.Line
			}
			other[h.Transport][pair{min(h.From, h.To), max(h.From, h.To)}] = true
		}
	}
	for _, way := range []string{"SHM", "NET"} {
		if len(other[way]) == 0 {
			continue
		}
		var list []string
		for p := range other[way] {
			list = append(list, fmt.Sprintf("%d–%d", p.a, p.b))
		}
		slices.Sort(list)
		names := strings.Join(list[:min(len(list), 8)], ", ")
		text := "GPUs of one host talk through host memory (SHM), %d of the pairs: %s"
		if way == "NET" {
			text = "GPUs of one host talk over the network, %d of the pairs: %s"
		}
		if p2p {
			text += ", where others have P2P"
		}
		b.say("pair-"+strings.ToLower(way), line[way], text, len(list), names)
	}
}

// oddNet looks at how hosts are joined.
func (b *builder) oddNet() {
	gdr, plain, cross, pxn, line := 0, 0, 0, 0, 0
	for i := range b.Hops {
		h := &b.Hops[i]
		if h.Transport != "NET" {
			continue
		}
		if h.GDR {
			gdr++
		} else {
			plain++
			line = h.Line
		}
		if h.Proxy >= 0 {
			pxn++
		}
		if h.Out >= 0 && h.In >= 0 && b.NICs[h.Out].Dev != b.NICs[h.In].Dev {
			cross++
		}
	}
	socket := slices.ContainsFunc(b.NICs, func(n NIC) bool { return n.Net == "Socket" && n.Hops > 0 })
	switch {
	case socket:
		b.say("sockets", line, "hosts are joined by TCP sockets: every byte passes the processors")
	case gdr > 0 && plain > 0:
		b.say("gdr-mixed", line, "%d hops over the network use GPUDirect RDMA and %d do not", gdr, plain)
	case plain > 0:
		b.say("gdr-none", line, "no hop over the network uses GPUDirect RDMA: every byte goes through host memory")
	}
	if cross > 0 {
		b.say("rails-crossed", 0, "%d hops leave by one NIC and arrive at another number: on a network of rails they cross "+
			"a spine", cross)
	}
	if pxn > 0 {
		b.say("pxn", 0, "%d hops go through the NIC of another GPU (PXN), over NVLink", pxn)
	}
}

// oddRings finds rings that leave a host more than once.
func (b *builder) oddRings() {
	for i := range b.Channels {
		c := &b.Channels[i]
		if c.Cut || c.RingLike != c.Index || len(b.Unseen) > 0 || len(b.Hosts) < 2 {
			continue
		}
		n := 0
		for k := range c.Ring {
			if b.Ranks[c.Ring[k]].Host != b.Ranks[c.Ring[(k+1)%len(c.Ring)]].Host {
				n++
			}
		}
		if n > len(b.Hosts) {
			b.say("ring-crosses", 0, "the ring of channel %d leaves a host %d times where %d would do: each byte passes the "+
				"network %.1f times as often", c.Index, n, len(b.Hosts), float64(n)/float64(len(b.Hosts)))
		}
	}
}
