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

// way is one that is worth a word, and whether a hop goes it.
type way struct {
	id, text string
	is       bool
}

// ways are those of a hop: within a host, and over the network.
func (b *builder) ways(h *Hop) []way {
	inside := b.HostOf[h.From] >= 0 && b.HostOf[h.From] == b.HostOf[h.To]
	net := h.Transport == "NET"
	socket := strings.HasPrefix(h.Via, "NET/Socket")
	return []way{
		{
			"connections-missing", "hops of rings have no line that says how they are connected",
			h.Ring && h.Transport == "" && len(b.Unseen) == 0,
		},
		{"pair-shm", "GPUs of one host talk through host memory (SHM)", inside && h.Transport == "SHM"},
		{"pair-net", "GPUs of one host talk over the network", inside && net},
		{"sockets", "hosts are joined by TCP sockets: every byte passes the processors", socket},
		{
			"gdr-none", "hops over the network use no GPUDirect RDMA: every byte goes through host memory",
			net && !h.GDR && !socket,
		},
		{
			"rails-crossed", "hops leave by one NIC and arrive at another number: on a network of rails they cross a spine",
			h.Out >= 0 && h.In >= 0 && b.NICs[h.Out].Dev != b.NICs[h.In].Dev,
		},
		{"pxn", "hops go through the NIC of another GPU (PXN), over NVLink", h.Proxy >= 0},
	}
}

// oddHops counts the hops of each odd way.
func (b *builder) oddHops() {
	var odd []Odd
	for i := range b.Hops {
		h := &b.Hops[i]
		for k, w := range b.ways(h) {
			if k == len(odd) {
				odd = append(odd, Odd{ID: w.id, Text: w.text})
			}
			if o := &odd[k]; w.is {
				if o.Hops++; o.Hops == 1 {
					o.Line = h.Line
				}
			}
		}
	}
	b.Odd = append(b.Odd, slices.DeleteFunc(odd, func(o Odd) bool { return o.Hops == 0 })...)
}
