package nccllog

import (
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/unit"
)

// Vertex is a line of the topology that NCCL prints under GRAPH: "CPU/1 (1/1/2)", and below it what hangs on it, such
// as "+ PCI[24.0] - GPU/9B000 (4)" and "+ NET[7.0] - NET/0 (30c7170003fd7010/1/7.000000)".
type Vertex struct{ kind, system, id, tail string }

// Seat is a GPU or, where Net names it, a NIC in that topology.
type Seat struct {
	Host string
	PCI  cluster.PCI
	NUMA int // -1 unknown
	Net  string
	Rate unit.Rate // of a NIC
}

func parseVertex(r *Record) any {
	text := r.Text
	if rest, ok := strings.CutPrefix(text, "+ "); ok {
		_, text, _ = strings.Cut(rest, " - ")
	}
	name, tail, _ := strings.Cut(text, " ")
	v := &Vertex{tail: strings.Trim(tail, "()")}
	v.kind, v.id, _ = strings.Cut(name, "/")
	if system, id, ok := strings.Cut(v.id, "-"); ok { // since 2.19
		v.system, v.id = system, id
	}
	if strings.HasPrefix(tail, ":") || v.id == "" {
		return nil // a row of paths
	}
	return v
}

// vertex files a GPU or a NIC below the socket that its thread has come to. Of several systems only the other hosts'
// own lines tell which is which.
func (c *Reader) vertex(r *Record, v *Vertex) {
	k := c.current(r)
	if k == nil || c.brief || strings.Trim(v.system, "0") != "" {
		return
	}
	at := &k.at
	at.Host = r.Host
	switch v.kind {
	case "CPU":
		*at = Seat{NUMA: number(v.id)}
		return
	case "GPU", "NIC":
		at.PCI = busPCI(v.id)
	case "NET":
		rate, _ := strconv.ParseFloat(v.tail[strings.LastIndexByte(v.tail, '/')+1:], 64)
		if rate > 0 && rate < 1e6 {
			at.Net, at.Rate = "NET/"+c.intern(v.id), unit.Rate(rate)*unit.GBps
		}
	}
	if s := *at; (v.kind == "GPU" || s.Net != "") && s.PCI != "" && len(c.seats) < maxNICs && !c.seats[s] {
		c.seats[s] = true
		c.log.Seats = append(c.log.Seats, s)
	}
	at.Net, at.Rate = "", 0
}

// addSeats adds what the topology shows of hosts whose ranks name no device: the log's beginning was cut off.
func (l *Log) addSeats(vendor string, hosts map[string]*cluster.NodeType) {
	bare := map[*cluster.NodeType]bool{}
	for _, t := range hosts {
		bare[t] = len(t.Devices) == 0
	}
	for _, s := range l.Seats {
		t := hosts[s.Host]
		if !bare[t] {
			continue
		}
		d, numa := board.GPU(vendor, -1), cluster.Fact[int]{}
		if s.NUMA >= 0 {
			numa = cluster.FromRead(s.NUMA, Format)
		}
		if s.Net != "" {
			d = board.NIC(s.Net)
			d.NIC.NUMA, d.NIC.Ports = numa, []cluster.Port{{Rate: cluster.FromRead(s.Rate, Format)}}
		} else {
			d.GPU.NUMA = numa
		}
		d.PCI = s.PCI
		t.Add(d)
	}
}
