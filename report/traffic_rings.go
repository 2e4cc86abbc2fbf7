package report

import (
	"fmt"
	"math"

	"busbar.dev/doctor/traffic"
	"busbar.dev/internal/svg"
	"busbar.dev/internal/words"
)

// rings draws every different ring as a strip of ranks, coloured by host; between
// hosts stand the NICs it leaves and enters by.
func (v *trafficView) rings(y float64) float64 {
	type strip struct {
		channel  *traffic.Channel
		channels []int
	}
	var strips []strip
	index := map[int]int{}
	for i := range v.Channels {
		c := &v.Channels[i]
		if len(c.Ring) == 0 {
			continue
		}
		at, ok := index[c.RingLike]
		if !ok {
			at = len(strips)
			index[c.RingLike] = at
			strips = append(strips, strip{channel: c})
		}
		strips[at].channels = append(strips[at].channels, c.Index)
	}
	if len(strips) == 0 {
		return y
	}
	tail := "ranks in the order that bytes travel, the last sends to the first"
	if v.crossed() {
		tail += "; between hosts: the NIC that it leaves by, the NIC that it enters by"
	}
	y = v.section(y, "Rings", tail)
	left := 132.0
	for _, s := range strips[:min(len(strips), maxRingStrips)] {
		left = math.Min(math.Max(left, trafficPad+12+svg.TextWidth(ringLabel(s.channels), ringType)), 300)
	}
	for i, s := range strips {
		if i == maxRingStrips {
			v.c.Text(trafficPad, y+4, fmt.Sprintf("and %d more that differ", len(strips)-i), svg.Type{Size: 12, Fill: inkSoft})
			return y + 18
		}
		y = v.ring(s.channel, s.channels, left, y)
	}
	return y
}

// ringType is how a ring's channels are set.
var ringType = svg.Type{Size: 11, Bold: true, Fill: ink}

func ringLabel(channels []int) string {
	if len(channels) == 1 {
		return fmt.Sprintf("channel %d", channels[0])
	}
	return "channels " + words.Numbers(channels)
}

func (v *trafficView) crossed() bool { return len(v.Flows) > 0 }

// stretch is a run of ranks of one host in a ring.
type stretch struct {
	host    int
	ranks   []int
	out, in int // NICs to the next
}

// stretches cuts a ring where it changes hosts.
func (v *trafficView) stretches(c *traffic.Channel) []stretch {
	var list []stretch
	for i, k := range c.Ring {
		host := v.Ranks[k].Host
		n := len(list)
		if n == 0 || list[n-1].host != host || host < 0 && v.leaves(c.Index, c.Ring[i-1], k) {
			list = append(list, stretch{host: host, out: -1, in: -1})
			n++
		}
		list[n-1].ranks = append(list[n-1].ranks, k)
	}
	for i := range list {
		next := list[(i+1)%len(list)].ranks[0]
		from := list[i].ranks[len(list[i].ranks)-1]
		if h := v.ringHop(c.Index, from, next); h != nil {
			list[i].out, list[i].in = h.Out, h.In
		}
	}
	return list
}

// ringHop is the hop of a channel's ring between two ranks, nil where there is none.
func (v *trafficView) ringHop(channel, from, to int) *traffic.Hop {
	if v.hops == nil {
		v.hops = map[[3]int]int{}
		for i := range v.Hops {
			if h := &v.Hops[i]; h.Ring {
				v.hops[[3]int{h.Channel, h.From, h.To}] = i
			}
		}
	}
	if i, ok := v.hops[[3]int{channel, from, to}]; ok {
		return &v.Hops[i]
	}
	return nil
}

// leaves reports whether a ring's hop goes over the network.
func (v *trafficView) leaves(channel, from, to int) bool {
	h := v.ringHop(channel, from, to)
	return h != nil && h.Transport == "NET"
}

// ring draws one strip; ranks are boxes where there is room, hosts where not.
func (v *trafficView) ring(c *traffic.Channel, channels []int, left, y float64) float64 {
	const gap, high = 34.0, 20.0
	list := v.stretches(c)
	v.c.Open("ring", "channels "+words.Numbers(channels))
	defer v.c.Close()
	v.c.Text(trafficPad, y+14, svg.Fit(ringLabel(channels), ringType, left-trafficPad-6), ringType)
	between := gap
	if len(list) < 2 {
		between = 0
	}
	perRow := len(list) // stretches a row
	cell := math.Min(26, (trafficW-left-trafficPad-float64(len(list))*between)/float64(len(c.Ring)))
	if cell < 15 && len(list) > 1 { // two rows and more
		longest := 0
		for _, s := range list {
			longest = max(longest, len(s.ranks))
		}
		cell = 16
		perRow = max(1, int((trafficW-left-trafficPad)/(float64(longest)*cell+between)))
	}
	if cell < 7 {
		cell = 7
	}
	x := left
	for i, s := range list {
		if i == maxStretches {
			v.c.Text(x+4, y+14, fmt.Sprintf("… and on, %d times more to another host", len(list)-i), svg.Type{Size: 11, Italic: true, Fill: inkSoft})
			return y + high + 9
		}
		if i > 0 && i%perRow == 0 {
			x, y = left, y+high+6
		}
		for _, k := range s.ranks {
			if x+cell > trafficW-trafficPad && len(list) < 2 {
				x, y = left, y+high+6
			}
			v.c.Rect(x, y, cell-1, high, 2, svg.Paint{Fill: hostFill(s.host), Stroke: panelLine, Width: 0.6})
			if cell >= 13 {
				v.c.Text(x+cell/2-0.5, y+14, fmt.Sprint(k), svg.Type{Size: math.Min(10, cell*0.56), Fill: ink, Anchor: svg.Middle})
			}
			x += cell
		}
		if len(list) > 1 {
			v.crossing(s, x, y, between, high)
			x += between
		}
	}
	if c.Cut {
		v.c.Text(x+4, y+14, "… cut in the log", svg.Type{Size: 11, Italic: true, Fill: inkSoft})
	}
	return y + high + 9
}

// maxStretches is how many changes of host of one ring are drawn.
const maxStretches = 32

// crossing draws the arrow between two hosts with the numbers of the NICs.
func (v *trafficView) crossing(s stretch, x, y, w, h float64) {
	v.c.Line(x+1, y+h-6, x+w-6, y+h-6, svg.Paint{Stroke: netViol, Width: 1.4})
	v.c.Path(new(svg.Pen).Move(x+w-3, y+h-6).Line(x+w-8, y+h-9).Line(x+w-8, y+h-3).Shut().String(), svg.Paint{Fill: netViol})
	text := dev(v.Run, s.out) + "›" + dev(v.Run, s.in)
	v.c.Text(x+w/2-1, y+9, text, svg.Type{Size: 9, Fill: netViol, Anchor: svg.Middle})
}

// dev is the number NCCL gives a NIC.
func dev(r *traffic.Run, nic int) string {
	if nic < 0 {
		return "?"
	}
	return fmt.Sprint(r.NICs[nic].Dev)
}
