package traffic

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
)

// NICName is what to call a NIC.
func (r *Run) NICName(i int) string {
	if n := r.NICs[i]; n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("NIC %d", r.NICs[i].Dev)
}

// odd lists what is worth a look: what the log lacks, how loads differ, and which hops go a slow way.
func (b *builder) odd() {
	if n := len(b.Unseen); n > 0 {
		b.say("ranks-missing", "%d of %d ranks wrote no line of this communicator (%s): their ends of the connections "+
			"are not known", n, b.NRanks, words.Numbers(b.Unseen))
	}
	b.oddRings()
	b.oddNICs()
	b.oddHops()
}

func (b *builder) say(id, format string, args ...any) {
	b.Odd = append(b.Odd, Odd{ID: id, Text: fmt.Sprintf(format, args...)})
}

// oddRings finds rings of which a part is not known, and those that leave a host more than once.
func (b *builder) oddRings() {
	var cut []int
	crossing := map[int][]int{} // channels by how often their rings go from host to host
	for i := range b.Channels {
		c := &b.Channels[i]
		if c.Cut {
			cut = append(cut, c.Index)
			continue
		}
		n := 0
		for k := range c.Ring {
			if b.hostOf(c.Ring[k]) != b.hostOf(c.Ring[(k+1)%len(c.Ring)]) {
				n++
			}
		}
		crossing[n] = append(crossing[n], c.Index)
	}
	if len(cut) > 0 {
		b.say("rings-cut", "the rings of channels %s are cut in the log and could not be put together: loads are of the "+
			"part that is there", words.Numbers(cut))
	}
	for _, n := range slices.Sorted(maps.Keys(crossing)) {
		if len(b.Unseen) == 0 && len(b.Hosts) > 1 && n > len(b.Hosts) {
			b.say("ring-crosses", "the rings of channels %s leave a host %d times where %d would do: each byte passes the "+
				"network %.1f times as often", words.Numbers(crossing[n]), n, len(b.Hosts), float64(n)/float64(len(b.Hosts)))
		}
	}
}

// oddNICs finds hosts where one NIC idles while another has two channels, and NICs that carry more than their share.
func (b *builder) oddNICs() {
	hosts := map[Odd][]string{} // by what is odd
	for h := range b.Hosts {
		var idle, used []int
		for i := range b.NICs {
			switch n := &b.NICs[i]; {
			case n.Host != h:
			case n.Hops == 0:
				idle = append(idle, i)
			default:
				used = append(used, i)
			}
		}
		if len(used) == 0 {
			continue
		}
		byLoad := func(x, y int) int { return int(1e6 * (b.NICs[x].Load() - b.NICs[y].Load())) }
		least, most := slices.MinFunc(used, byLoad), slices.MaxFunc(used, byLoad)
		if n := &b.NICs[most]; len(idle) > 0 && len(n.Channels) > 1 {
			text := fmt.Sprintf("%s carries channels %s and none uses %s; storage NICs are left out on purpose, others are "+
				"lost bandwidth (NCCL_IB_HCA, distance to the GPUs)", b.NICName(most), words.Numbers(n.Channels), b.names(idle))
			o := Odd{ID: "nic-idle", Text: text}
			hosts[o] = append(hosts[o], b.Hosts[h].Name)
		}
		if times := b.NICs[most].Load() / b.NICs[least].Load(); times > 1.25 {
			o := Odd{ID: "nic-uneven", Text: fmt.Sprintf("%s carries %.1f times what the least used NIC does: the busiest "+
				"NIC decides", b.NICName(most), times)}
			hosts[o] = append(hosts[o], b.Hosts[h].Name)
		}
	}
	for o, names := range hosts {
		o.Text = cluster.FormatHosts(names) + ": " + o.Text
		b.Odd = append(b.Odd, o)
	}
	slices.SortFunc(b.Odd, func(x, y Odd) int { return strings.Compare(x.ID+x.Text, y.ID+y.Text) })
}

func (b *builder) names(list []int) string {
	var out []string
	for _, i := range list {
		out = append(out, b.NICName(i))
	}
	return strings.Join(out, ", ")
}

// oddWays are the ways of hops that are worth a word: within a host, and over the network.
var oddWays = []struct{ id, text string }{
	{"connections-missing", "hops of rings have no line that says how they are connected"},
	{"pair-shm", "GPUs of one host talk through host memory (SHM)"},
	{"pair-net", "GPUs of one host talk over the network"},
	{"sockets", "hosts are joined by TCP sockets: every byte passes the processors"},
	{"gdr-none", "hops over the network use no GPUDirect RDMA: every byte goes through host memory"},
	{"rails-crossed", "hops leave by one NIC and arrive at another number: on a network of rails they cross a spine"},
	{"pxn", "hops go through the NIC of another GPU (PXN), over NVLink"},
}

// ways are those of a hop, by the ids of oddWays.
func (b *builder) ways(h *Hop) (list []string) {
	inside := b.HostOf[h.From] >= 0 && b.HostOf[h.From] == b.HostOf[h.To]
	add := func(id string, is bool) {
		if is {
			list = append(list, id)
		}
	}
	net := h.Transport == "NET"
	socket := strings.HasPrefix(h.Via, "NET/Socket")
	add("connections-missing", h.Ring && h.Transport == "" && len(b.Unseen) == 0)
	add("pair-shm", inside && h.Transport == "SHM")
	add("pair-net", inside && net)
	add("sockets", socket)
	add("gdr-none", net && !h.GDR && !socket)
	add("rails-crossed", h.Out >= 0 && h.In >= 0 && b.NICs[h.Out].Dev != b.NICs[h.In].Dev)
	add("pxn", h.Proxy >= 0)
	return list
}

// oddHops counts the hops of each odd way.
func (b *builder) oddHops() {
	count, line := map[string]int{}, map[string]int{}
	for i := range b.Hops {
		h := &b.Hops[i]
		for _, id := range b.ways(h) {
			if count[id]++; count[id] == 1 {
				line[id] = h.Line
			}
		}
	}
	for _, w := range oddWays {
		if n := count[w.id]; n > 0 {
			b.Odd = append(b.Odd, Odd{w.id, w.text, n, line[w.id]})
		}
	}
}
