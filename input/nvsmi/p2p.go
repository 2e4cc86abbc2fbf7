package nvsmi

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lines"
)

const p2pFormat = "nvidia-smi topo -p2p"

// maxP2P is the most GPUs a peer-access matrix may have: each pair is kept.
const maxP2P = 128

// MatchP2P reports whether data holds a matrix of peer access.
func MatchP2P(data []byte) bool { return matchTable(data, true) }

// p2pCapability finds what a command line asks for: the letters after -p2p.
func p2pCapability(line string) string {
	_, rest, ok := strings.Cut(line, "-p2p")
	if !ok {
		if _, rest, ok = strings.Cut(line, "--p2pstatus"); !ok {
			return ""
		}
	}
	rest = strings.TrimLeft(rest, " =")
	end := 0
	for end < len(rest) && strings.IndexByte("rwnap", rest[end]) >= 0 {
		end++
	}
	if end == 0 || end < len(rest) && (rest[end] >= 'a' && rest[end] <= 'z') {
		return ""
	}
	return strings.Clone(rest[:end])
}

// ReadP2P reads every matrix of peer access in a text. Where the command line
// above it says that it shows NVLink, atomics or PCIe capability instead of
// reads and writes, only its OK cells count: a pair without NVLink may well have
// peer access over PCIe.
func ReadP2P(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: p2pFormat, Source: name}
	tables, err := scan(name, r, true)
	if err != nil {
		return nil, err
	}
	if len(tables) == 0 {
		return nil, fmt.Errorf("%s: no matrix of peer access found; expected a header of GPU0 GPU1 … and rows such as "+
			"GPU0 X OK; save the output of nvidia-smi topo -p2p r", name)
	}
	at := map[string]*cluster.NodeType{}
	for _, t := range tables {
		if n := len(t.head.cols); n > maxP2P || t.head.over {
			return nil, fmt.Errorf("%s:%d: %d columns; at most %d GPUs; cut the text to one matrix", name, t.line, n, maxP2P)
		}
		hosts := t.hosts
		if len(hosts) == 0 {
			hosts = []string{""}
			if len(tables) > 1 {
				hosts[0] = t.prompt
			}
		}
		key := strings.Join(hosts, " ") + "|" + strings.Join(t.head.cols, " ")
		node := at[key]
		if node == nil {
			node = t.gpus()
			at[key] = node
			f.Types = append(f.Types, node)
			for _, h := range hosts {
				f.Hosts = append(f.Hosts, cluster.Host{Name: h, Type: len(f.Types) - 1})
			}
		}
		t.reportMissing(f, hosts[0])
		t.addPairs(f, node, hosts[0])
		t.addTo(f, hosts[0])
	}
	return f, nil
}

func (t *table) gpus() *cluster.NodeType {
	node := &cluster.NodeType{}
	for _, name := range t.head.cols {
		if n, ok := lines.Numbered(name, "GPU"); ok {
			node.Add(cluster.Device{Kind: cluster.GPU, Index: n, Parent: -1, GPU: &cluster.GPUInfo{Vendor: "nvidia"}})
		}
	}
	return node
}

// addPairs records the answers. Of two tables for one machine (reads, writes)
// the refusal counts.
func (t *table) addPairs(f *cluster.Fragment, node *cluster.NodeType, host string) {
	partial := strings.Trim(t.cap, "rw") != ""
	have := make(map[[2]int]int, len(node.Pairs))
	for i, p := range node.Pairs {
		have[[2]int{p.A, p.B}] = i
	}
	for i, r := range t.rows {
		if r == nil {
			continue
		}
		for j, c := range r.cells {
			a, b := node.ByName(deviceName(t.head.cols[i])), node.ByName(deviceName(t.head.cols[j]))
			p := cluster.Pair{A: a, B: b, P2P: cluster.Yes}
			switch {
			case a < 0 || b < 0 || i == j || c == "" || c == "X":
				continue
			case p2pWords[c] == "":
				f.Warnf(r.line, host, "row %s, column %s: %s in a matrix of peer access; expected OK, CNS, GNS, TNS, NS, DR or U",
					t.head.cols[i], t.head.cols[j], c)
				continue
			case c == "U":
				p.P2P = cluster.Maybe
			case c != "OK" && partial:
				continue
			case c != "OK":
				p.P2P, p.Why = cluster.No, c+": "+p2pWords[c]
			}
			k, ok := have[[2]int{a, b}]
			switch {
			case !ok:
				have[[2]int{a, b}] = len(node.Pairs)
				node.Pairs = append(node.Pairs, p)
			case node.Pairs[k].P2P != cluster.No && p.P2P != cluster.Maybe:
				node.Pairs[k] = p
			}
		}
	}
}

// deviceName is the model's name of a GPU column.
func deviceName(col string) string {
	if n, ok := lines.Numbered(col, "GPU"); ok {
		return fmt.Sprintf("gpu%d", n)
	}
	return ""
}
