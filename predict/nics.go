package predict

import (
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// NICs is what the caller says of a node's NICs.
type NICs struct {
	Count int             // a node; 0: as many as the source has
	Rate  unit.Rate       // of a port, one direction; 0 unknown
	Kind  cluster.NetKind // "" unknown
}

// nicCount is "4x200Gb/s", "4 x HDR": the count comes first, as in a cluster file.
var nicCount = lazyre.New(`^\s*(\d+)\s*[xX×*]\s*(\S.*)$`)

// maxNICs is more than any node has.
const maxNICs = 64

// nicKinds are the networks that can stand behind a rate.
var nicKinds = []cluster.NetKind{
	cluster.InfiniBand, cluster.RoCE, cluster.Ethernet, cluster.EFA, cluster.Slingshot, cluster.OmniPath, cluster.TCPX,
	cluster.TCPXO,
}

// ParseNICs reads a rate or a port's speed ("200Gb/s", "HDR", "100GbE"), with a
// count of NICs before it ("4x200Gb/s", "4xHDR": four NICs) and a network behind
// it ("8 x 400Gb/s roce").
func ParseNICs(text string) (NICs, error) {
	var n NICs
	rest := strings.TrimSpace(text)
	if m := nicCount.FindStringSubmatch(rest); m != nil {
		var err error
		if n.Count, err = strconv.Atoi(m[1]); err != nil || n.Count < 1 || n.Count > maxNICs {
			return n, fmt.Errorf("%q: expected 1 to %d NICs per node", text, maxNICs)
		}
		rest = m[2]
	}
	for _, k := range nicKinds {
		if before, ok := strings.CutSuffix(strings.ToLower(rest), " "+string(k)); ok {
			n.Kind, rest = k, rest[:len(before)]
		}
	}
	p, err := hardware.ParsePortSpeed(rest)
	if err != nil {
		return n, fmt.Errorf("%w; a count before it adds NICs: 4x200Gb/s, 4xHDR", err)
	}
	if n.Rate = p.Rate; n.Kind == "" {
		n.Kind = p.Kind
	}
	return n, nil
}

// ethernetOnly is the fastest port that is Ethernet where nothing is said: InfiniBand of such rates is older than GPUs
// that train.
const ethernetOnly = 25 * unit.Gbps

// addNICs gives a type without NICs as many as the caller says (default one), spread evenly over
// its GPUs: beside each GPU on a PCIe switch where there are enough of them, else
// on the NUMA domains.
func addNICs(t *cluster.NodeType, g NICs) string {
	kind, guessed := g.Kind, ""
	switch {
	case kind != "":
	case g.Rate <= ethernetOnly:
		kind, guessed = cluster.Ethernet, " Ethernet"
	default:
		kind, guessed = cluster.InfiniBand, " InfiniBand"
	}
	more := ""
	if g.Count == 0 {
		g.Count, more = 1, " (a count before the rate, as 4x, gives more)"
	}
	hardware.Spec{NICs: g.Count, Port: g.Rate, Kind: kind, Source: AsGiven}.AddNICs(t)
	where := "spread over the NUMA domains"
	switch {
	case g.Count >= t.Count(cluster.GPU):
		where = "each on a PCIe switch with a GPU"
	case g.Count == 1:
		where = "on the first NUMA domain"
	}
	return fmt.Sprintf("no source names NICs of %s; taken as %s of %s%s as given, %s%s", t.Name,
		words.Plural(g.Count, "NIC"), g.Rate.Bits(), guessed, where, more)
}

// noNICs says what to do about a node without NICs whose data has to leave it.
func noNICs(t *cluster.NodeType) error {
	several := ""
	// and nothing else; 4xa6000 names a GPU too
	if _, ok := hardware.GPUByName(t.Preset); ok && t.Count(cluster.GPU) == 1 {
		several = fmt.Sprintf("; %s is a host with one GPU: four of them in one node are -c 4x%s", t.Preset, t.Preset)
	}
	return failure.In("nic", fmt.Errorf("%s: no source names its NICs, and data has to leave the nodes; give them "+
		"(--nic 10GbE: one per node; --nic 4xHDR: four per node), "+
		"or write them into a cluster file (nics: 4 x HDR infiniband) and join it (busbar map node0=topo.txt site.yaml -o "+
		"cluster.yaml), "+
		"or stay on one node (-l 1x%d)%s", t.Name, max(1, t.Count(cluster.GPU)), several))
}
