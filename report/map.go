package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/input"
	"busbar.dev/input/ncclxml"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Map prints a cluster, and what is wrong with it below.
func Map(p *Page, d *query.MapDoc) {
	cl, err := d.Cluster()
	if err != nil {
		p.err = err
		return
	}
	clusterText(p, cl, finding.Count(d.Audit).String())
	contributed(p, d.Contributed)
	if len(d.Audit) > 0 {
		p.printf("\n")
		Findings(p, d.Audit)
	}
}

// MapPicture draws the cluster of a map.
func MapPicture(d *query.MapDoc) (*Picture, error) {
	cl, err := d.Cluster()
	if err != nil {
		return nil, err
	}
	return Drawing(cl), nil
}

// contributed prints what each of several sources gave, those that gave the same of other hosts together.
func contributed(p *Page, list []input.Contribution) {
	if len(list) < 2 {
		return
	}
	var alike grouped[string, input.Contribution]
	for _, c := range list {
		alike.put(fmt.Sprint(c.Format, c.Gives, c.LeftOut), c)
	}
	t := p.columns("source", "format", "about", "gives")
	for _, all := range alike.all() {
		var hosts []string
		for _, c := range all {
			some, _ := cluster.ParseHosts(c.Hosts) // a name that is none of a host is about no host
			hosts = append(hosts, some...)
		}
		slices.Sort(hosts)
		c, about := all[0], cluster.FormatHosts(slices.Compact(hosts))
		what := strings.Join(c.Gives, " · ")
		if c.LeftOut != "" {
			what = "left out: " + c.LeftOut
		} else if about == "" {
			about = "every node"
		}
		t.Row(c.Source+andMore(len(all)-1, "more"), c.Format, about, what)
	}
	p.printf("\nSources\n")
	p.lay(t)
}

// Paths prints paths between devices, hop by hop.
func Paths(p *Page, d *query.PathDoc) {
	for _, x := range d.Paths {
		rate := "unknown rate"
		if x.Origin != cluster.Unknown {
			rate = when(x.Unknown > 0, "at most ") + fmt.Sprintf("%v one direction (%v)", x.Rate, x.Origin)
		}
		p.printf("%s → %s: %v, %s; %s\n  limited by %s\n", x.From, x.To, x.Class, x.Via, rate, x.Bottleneck)
		for _, h := range x.Hops {
			p.printf("    %v\n", cluster.Hop{
				From: h.From, To: h.To, Kind: h.Kind, Rate: cluster.Fact[unit.Rate]{Value: h.Rate, Origin: h.Origin},
			})
		}
	}
}

// NCCLTopology writes the file for NCCL_TOPO_FILE, which describes one node, and gives what to know before it is used.
func NCCLTopology(w io.Writer, cl *cluster.Cluster) (notes []string, err error) {
	var with []*cluster.NodeType
	var names []string
	for _, t := range cl.Types {
		if t.Count(cluster.GPU) > 0 {
			with = append(with, t)
			names = append(names, t.Name)
		}
	}
	switch len(with) {
	case 0:
		return nil, fmt.Errorf("-o nccl-xml: no node has a GPU")
	case 1:
	default:
		return nil, fmt.Errorf("-o nccl-xml: the file describes one node and this cluster has %d kinds (%s); map one of "+
			"them", len(with), strings.Join(names, ", "))
	}
	t := with[0]
	if t.Trays > 1 {
		notes = append(notes, fmt.Sprintf("%s spans %d hosts and NCCL reads one host per file: this is one of them", t.Name,
			t.Trays))
		t = t.Tray(t.Devices[t.Of(cluster.GPU)[0]].Tray)
	}
	domain, err := ncclxml.Write(w, t)
	if domain != "" {
		notes = append(notes, fmt.Sprintf("bus ids %s:… are made up: NCCL matches GPUs by bus id; replace them with the "+
			"machine's own", domain))
	}
	return notes, err
}
