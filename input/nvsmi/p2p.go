package nvsmi

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/pairtable"
	"busbar.dev/internal/lines"
)

const p2pFormat = "nvidia-smi topo -p2p"

// maxP2P is the most GPUs a peer-access matrix may have: each pair is kept.
const maxP2P = 128

// readP2P makes nodes of matrices of peer access. Where the command line above one says that it shows NVLink, atomics
// or PCIe capability instead of reads and writes, only its OK cells count: a pair without NVLink may well have peer
// access over PCIe.
func readP2P(name string, tables []*table) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: p2pFormat, Source: name}
	at := map[string]*pairtable.Node{}
	var ends []func() // of the nodes, in order
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
			gpus := map[int]cluster.Device{}
			for _, c := range t.Cols {
				if n, ok := lines.Numbered(c, "GPU"); ok {
					gpus[n] = board.GPU("nvidia", n)
				}
			}
			node = pairtable.NewNode(f, gpus)
			at[key] = node
			ends = append(ends, func() { node.Close(hosts...) })
		}
		t.addPairs(node)
		t.addTo(f, hosts[0])
	}
	for _, end := range ends {
		end()
	}
	return f, nil
}

// addPairs records the answers. Of two tables for one machine (reads, writes)
// the refusal counts.
func (t *table) addPairs(node *pairtable.Node) {
	partial := strings.Trim(t.cap, "rw") != ""
	for i, r := range t.Rows {
		if r == nil {
			continue
		}
		for j, c := range r.Cells {
			a, ok1 := lines.Numbered(t.Cols[i], "GPU")
			b, ok2 := lines.Numbered(t.Cols[j], "GPU")
			if !ok1 || !ok2 || !node.Two(a, b) || c == "" {
				continue
			}
			if p2pWords[c] == "" {
				t.Warns.Addf(r.Line, "row %s, column %s: %s in a matrix of peer access; expected OK, CNS, GNS, TNS, NS, DR or U",
					t.Cols[i], t.Cols[j], c)
				continue
			}
			if c != "OK" && c != "U" && partial {
				continue
			}
			switch p := node.Pair(a, b); {
			case c == "U" || p.P2P == cluster.No:
			case c == "OK":
				p.P2P = cluster.Yes
			default:
				p.P2P, p.Why = cluster.No, c+": "+p2pWords[c]
			}
		}
	}
}
