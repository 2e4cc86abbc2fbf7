package launch

import (
	"bytes"
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/input/ncclxml"
)

// Topologies writes a topology file for NCCL for every kind of node whose own description is wrong. shown is what such
// a node says of itself (an NCCL dump, lstopo's XML, a copy of /sys), nil where nobody gave it: then NCCL's
// detection is left alone.
func (p *Plan) Topologies(shown *cluster.NodeType) ([]File, []Left) {
	const name = "topo-0.xml"
	if shown == nil {
		return nil, []Left{{name, "no node is known to detect its topology wrongly (to check, give --detected FILE with a " +
			"node's NCCL_TOPO_DUMP_FILE); NCCL's own detection is used"}}
	}
	var files []File
	var left []Left
	for i, t := range p.kinds {
		file := fmt.Sprintf("topo-%d.xml", i)
		what, reason := Misread(t, shown)
		if reason != "" {
			left = append(left, Left{file, reason})
			continue
		}
		var b bytes.Buffer
		fmt.Fprintf(&b, "<!-- For NCCL_TOPO_FILE. Nodes show themselves otherwise: %s. Made by busbar plan. -->\n",
			comment(what))
		if _, err := ncclxml.Write(&b, t); err != nil {
			left = append(left, Left{file, fmt.Sprintf("NCCL's format cannot say what %s is: %v", t.Name, err)})
			continue
		}
		p.Types[i].Topology, p.Types[i].Why = file, what
		files = append(files, File{Name: file, Text: b.String()})
	}
	return files, left
}

// comment is a text that does not end an XML comment.
func comment(s string) string {
	var b bytes.Buffer
	for _, r := range line(s) {
		if r == '-' || r == '<' || r == '>' {
			r = '_'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// Misread holds what a node shows of itself against what is known of it: devices that both know by their PCI
// addresses, and how near they are to each other. It says what is wrong, or the reason why no file is of use.
func Misread(known, shown *cluster.NodeType) (wrong, reason string) {
	type pair struct{ here, there int }
	var both []pair
	for d := range known.Devices {
		x := &known.Devices[d]
		if x.Kind != cluster.GPU && x.Kind != cluster.NIC || x.PCI == "" {
			continue
		}
		if at := shown.ByPCI(x.PCI); at >= 0 && shown.Devices[at].Kind == x.Kind {
			both = append(both, pair{d, at})
		} else if x.Kind == cluster.GPU {
			return "", fmt.Sprintf("the node shows no GPU at %s (%s): NCCL drops what is not there, so that a file needs the "+
				"machine's own addresses", x.PCI, x.Name)
		}
	}
	if len(both) < 2 {
		return "", "the cluster's description has no PCI addresses, by which NCCL finds the devices of a file"
	}
	a, b := cluster.NewRoutes(one(known)), cluster.NewRoutes(one(shown))
	count := 0
	for i, x := range both {
		for _, y := range both[:i] {
			if known.Devices[x.here].Kind == cluster.NIC && known.Devices[y.here].Kind == cluster.NIC {
				continue
			}
			_, is := a.Tree(0, x.here, y.here)
			_, said := b.Tree(0, x.there, y.there)
			if is == said {
				continue
			}
			if count++; count == 1 {
				wrong = fmt.Sprintf("%s and %s as %s, which are %s", known.Devices[y.here].Title(), known.Devices[x.here].Title(),
					said, is)
			}
		}
	}
	switch {
	case count == 0:
		return "", "nodes show themselves as the cluster's description has them: NCCL's own detection is right"
	case count > 1:
		wrong += fmt.Sprintf(", and %d more pairs", count-1)
	}
	return wrong, ""
}

func one(t *cluster.NodeType) *cluster.Cluster {
	return &cluster.Cluster{Types: []*cluster.NodeType{t}, Hosts: []cluster.Host{{Name: "x"}}}
}
