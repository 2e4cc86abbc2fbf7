package nccl

import (
	"fmt"
	"strconv"
)

// shape is what a search depends on, as text: nodes of equal shape need one
// search, such as the trays of a rack, whose devices have different numbers.
func (s *system) shape() string {
	b := fmt.Appendf(nil, "%t", s.inter)
	hosts := map[int]int{}
	for _, list := range s.nodes {
		b = append(b, '\n')
		for _, n := range list {
			if _, ok := hosts[n.host]; !ok {
				hosts[n.host] = len(hosts)
			}
			b = strconv.AppendInt(append(b, '@'), int64(hosts[n.host]), 10)
			if s.arch != "" { // RCCL's models go by numbers of devices and buses
				b = fmt.Appendf(b, "%s/%x", s.arch, n.id)
			}
			switch n.kind {
			case kindGPU:
				b = fmt.Appendf(b, "%v", n.gpu)
				for _, o := range list {
					if s.p2pOff[[2]int{n.index, o.index}] {
						b = strconv.AppendInt(append(b, '-'), int64(o.index), 10)
					}
				}
			case kindCPU:
				b = fmt.Appendf(b, "%v", n.cpu)
			case kindNET:
				b = fmt.Appendf(b, "%v %v %d %d %t %t", n.net.bw, n.net.latency, n.net.asic, n.net.port, n.net.gdr, n.net.coll)
			}
			for _, l := range n.links {
				b = append(b, ' ', 'a'+byte(l.kind), 'a'+byte(l.to.kind))
				b = strconv.AppendInt(b, int64(l.to.index), 10)
				b = strconv.AppendFloat(append(b, ':'), float64(l.bw), 'g', -1, 32)
			}
		}
	}
	return string(b)
}
