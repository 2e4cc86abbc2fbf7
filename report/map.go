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
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/unit"
)

// Map prints a cluster, and what is wrong with it below.
func Map(w io.Writer, d *query.MapDoc, o TextOptions) error {
	cl, err := d.Cluster()
	if err != nil {
		return err
	}
	if err := clusterText(w, cl, finding.Count(d.Audit).String(), o); err != nil {
		return err
	}
	if err := contributed(w, d.Contributed, o); err != nil || len(d.Audit) == 0 {
		return err
	}
	fmt.Fprintln(w)
	return Findings(w, d.Audit, o)
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
func contributed(w io.Writer, list []input.Contribution, o TextOptions) error {
	if len(list) < 2 {
		return nil
	}
	type row struct {
		first input.Contribution
		hosts []string
		more  int
	}
	var rows []*row
	at := map[string]*row{}
	for _, c := range list {
		key := fmt.Sprint(c.Format, c.Gives, c.LeftOut)
		r := at[key]
		if r == nil {
			r = &row{first: c}
			at[key], rows = r, append(rows, r)
		} else {
			r.more++
		}
		hosts, err := cluster.ParseHosts(c.Hosts)
		if err != nil {
			hosts = nil
		}
		r.hosts = append(r.hosts, hosts...)
	}
	t := texttab.New("source", "format", "about", "gives")
	t.Indent = "  "
	for _, r := range rows {
		name := r.first.Source
		if r.more > 0 {
			name += fmt.Sprintf(" and %d more", r.more)
		}
		slices.Sort(r.hosts)
		about, what := cluster.FormatHosts(slices.Compact(r.hosts)), strings.Join(r.first.Gives, " · ")
		if r.first.LeftOut != "" {
			what = "left out: " + r.first.LeftOut
		} else if about == "" {
			about = "every node"
		}
		t.Row(name, r.first.Format, about, what)
	}
	_, err := fmt.Fprintf(w, "\nSources\n%s", texttab.Clean(t.Fit(o.Width)))
	return err
}

// Paths prints paths between devices, hop by hop.
func Paths(w io.Writer, d *query.PathDoc) error {
	var text strings.Builder
	for _, p := range d.Paths {
		rate := "unknown rate"
		if p.Origin != cluster.Unknown {
			rate = fmt.Sprintf("%v one direction (%v)", p.Rate, p.Origin)
			if p.Unknown > 0 {
				rate = "at most " + rate
			}
		}
		fmt.Fprintf(&text, "%s → %s: %v, %s; %s\n  limited by %s\n", p.From, p.To, p.Class, p.Via, rate, p.Bottleneck)
		for _, h := range p.Hops {
			fmt.Fprintf(&text, "    %v\n", cluster.Hop{
				From: h.From, To: h.To, Kind: h.Kind, Rate: cluster.Fact[unit.Rate]{Value: h.Rate, Origin: h.Origin},
			})
		}
	}
	clean := texttab.Clean(text.String())
	if t, ok := w.(texttab.Terminal); ok {
		clean = texttab.WrapLong(clean, t.Columns())
	}
	_, err := io.WriteString(w, clean)
	return err
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
	var form ncclxml.Form
	if t.Trays > 1 {
		form.Tray = t.Devices[t.Of(cluster.GPU)[0]].Tray + 1
		notes = append(notes, fmt.Sprintf("%s spans %d hosts and NCCL reads one host per file: this is tray %d", t.Name,
			t.Trays, form.Tray))
	}
	if domain := form.MadeUp(t); domain != "" {
		notes = append(notes, fmt.Sprintf("bus ids %s:… are made up: NCCL matches GPUs by bus id; replace them with the "+
			"machine's own", domain))
	}
	return notes, form.Write(w, t)
}
