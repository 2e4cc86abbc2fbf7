package nvsmi

import (
	"bytes"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

const plainFormat = "nvidia-smi -q"

// plainHead begins the part of a GPU.
var plainHead = lazyre.New(`^\s*GPU ([0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7])\s*$`)

// MatchPlain reports whether data holds the text of nvidia-smi -q.
func MatchPlain(data []byte) bool {
	return bytes.Contains(data, []byte("NVSMI LOG")) && gather.Find(data, "GPU ", plainHead.MatchString)
}

// ReadPlain reads the text of nvidia-smi -q: what ReadXML reads of the XML.
func ReadPlain(name string, r io.Reader) (*cluster.Fragment, error) {
	p := plainReader{v: &inventory{format: plainFormat}, at: map[string]*plainNode{}}
	if err := lines.Each(name, r, p.line); err != nil {
		return nil, err
	}
	for _, host := range p.order {
		p.v.noteReport(host, &p.at[host].report)
	}
	return p.v.fragment(name, "no GPU found; expected a line such as GPU 00000000:06:00.0; save the output of "+
		"nvidia-smi -q")
}

type plainReader struct {
	v     *inventory
	heads gather.Headings
	at    map[string]*plainNode
	order []string
}

// plainNode is the report of one host so far.
type plainNode struct {
	report
	indent []int // of the open sections
}

// line reads one line: a heading, a section or a key with its value. Indentation tells what belongs where.
func (p *plainReader) line(num int, text string) error {
	if p.heads.Line(text) {
		return nil
	}
	host := p.heads.Host("")
	if !plainHead.MatchString(text) {
		if h, rest, ok := gather.Cut(text); ok && !strings.HasPrefix(text, " ") {
			host, text = h, rest
		}
	}
	n := p.at[host]
	switch m := plainHead.FindStringSubmatch(text); {
	case strings.Contains(text, "NVSMI LOG"): // the next report of the same host, or of one without a name
		if n != nil {
			p.v.noteReport(host, &n.report)
		}
	case m != nil:
		if n = p.node(host); n == nil {
			return nil
		}
		n.newGPU(m[1], num)
		n.path, n.indent = nil, nil
	default:
		key, value, ok := strings.Cut(text, " : ")
		if key = strings.TrimSpace(key); ok && key == "Attached GPUs" {
			if n = p.node(host); n != nil {
				n.attached, _ = strconv.Atoi(strings.TrimSpace(value))
			}
		} else if n != nil && len(n.gpus) > 0 && key != "" {
			n.takeValue(text, key, strings.TrimSpace(value), ok)
		}
	}
	return nil
}

func (p *plainReader) node(host string) *plainNode {
	if n := p.at[host]; n != nil || len(p.at) >= gather.MaxHosts {
		return n
	}
	n := &plainNode{}
	p.at[host] = n
	p.order = append(p.order, host)
	return n
}

// takeValue files a section, or the value of a key in the open sections.
func (n *plainNode) takeValue(text, key, value string, isValue bool) {
	depth := len(text) - len(strings.TrimLeft(text, " \t"))
	for k := len(n.indent); k > 0 && n.indent[k-1] >= depth; k-- {
		n.indent, n.path = n.indent[:k-1], n.path[:k-1]
	}
	if isValue {
		n.set(append(n.path, key), value)
	} else if len(n.path) < maxDepth {
		n.path, n.indent = append(n.path, key), append(n.indent, depth)
	}
}
