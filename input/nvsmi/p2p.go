package nvsmi

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lines"
)

const p2pFormat = "nvidia-smi topo -p2p"

// maxP2P is the most GPUs a peer-access matrix may have: each pair is kept.
const maxP2P = 128

// MatchP2P reports whether data holds a matrix of peer access.
func MatchP2P(data []byte) bool { return matchTable(data, true) }

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
		if n := len(t.Cols); n > maxP2P {
			return nil, fmt.Errorf("%s:%d: %d columns; at most %d GPUs; cut the text to one matrix", name, t.Line, n, maxP2P)
		}
		if err := t.Check(); err != nil {
			return nil, fmt.Errorf("%s:%w", name, err)
		}
		hosts := t.names(len(tables) > 1)
		key := strings.Join(hosts, " ") + "|" + strings.Join(t.Cols, " ")
		node := at[key]
		if node == nil {
			node = t.gpus()
			at[key] = node
			f.Types = append(f.Types, node)
			for _, h := range hosts {
				f.Hosts = append(f.Hosts, cluster.Host{Name: h, Type: len(f.Types) - 1})
			}
		}
		t.addPairs(node)
		t.addTo(f, hosts[0])
	}
	return f, nil
}

func (t *table) gpus() *cluster.NodeType {
	node := &cluster.NodeType{}
	for _, name := range t.Cols {
		if n, ok := lines.Numbered(name, "GPU"); ok {
			node.Add(board.GPU("nvidia", n))
		}
	}
	return node
}

// addPairs records the answers. Of two tables for one machine (reads, writes)
// the refusal counts.
func (t *table) addPairs(node *cluster.NodeType) {
	partial := strings.Trim(t.cap, "rw") != ""
	have := make(map[[2]int]int, len(node.Pairs))
	for i, p := range node.Pairs {
		have[[2]int{p.A, p.B}] = i
	}
	for i, r := range t.Rows {
		if r == nil {
			continue
		}
		for j, c := range r.Cells {
			a, b := node.ByName(strings.ToLower(t.Cols[i])), node.ByName(strings.ToLower(t.Cols[j]))
			p := cluster.Pair{A: a, B: b, P2P: cluster.Yes}
			switch {
			case a < 0 || b < 0 || i == j || c == "" || c == "X":
				continue
			case p2pWords[c] == "":
				t.Warns.Addf(r.Line, "row %s, column %s: %s in a matrix of peer access; expected OK, CNS, GNS, TNS, NS, DR or U",
					t.Cols[i], t.Cols[j], c)
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
