package nvsmi

import (
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
	return lines.Has(data, "NVSMI LOG") && gather.Find(data, "GPU ", plainHead.MatchString)
}

// ReadPlain reads the text of nvidia-smi -q: what ReadXML reads of the XML, of hosts one behind the other.
func ReadPlain(name string, r io.Reader) (*cluster.Fragment, error) {
	p := plainReader{inventory: inventory{format: plainFormat}}
	if err := lines.Each(name, r, p.line); err != nil {
		return nil, err
	}
	p.noteReport(p.host, &p.report)
	return p.fragment(name, "no GPU found; expected a line such as GPU 00000000:06:00.0; save the output of nvidia-smi -q")
}

type plainReader struct {
	inventory
	report
	heads  gather.Headings
	host   string // of the report at hand
	indent []int  // of the open sections
}

// line reads one line: a heading, a section or a key with its value. Indentation tells what belongs where.
func (p *plainReader) line(num int, text string) error {
	if p.heads.Line(text) {
		return nil
	}
	host := p.heads.Host("")
	if h, rest, ok := gather.Cut(text); ok && text[0] != ' ' {
		host, text = h, rest
	}
	m := plainHead.FindStringSubmatch(text)
	if begins := strings.Contains(text, "NVSMI LOG"); begins || m != nil && host != p.host {
		p.noteReport(p.host, &p.report)
		p.host = host
	}
	key, value, ok := strings.Cut(text, " : ")
	switch key = strings.TrimSpace(key); {
	case host != p.host:
	case m != nil:
		p.newGPU(m[1], num)
		p.path, p.indent = nil, nil
	case ok && key == "Attached GPUs":
		p.attached, _ = strconv.Atoi(strings.TrimSpace(value))
	case len(p.gpus) > 0 && key != "":
		p.takeValue(text, key, strings.TrimSpace(value), ok)
	}
	return nil
}

// takeValue files a section, or the value of a key in the open sections.
func (p *plainReader) takeValue(text, key, value string, isValue bool) {
	depth := len(text) - len(strings.TrimLeft(text, " \t"))
	for k := len(p.indent); k > 0 && p.indent[k-1] >= depth; k-- {
		p.indent, p.path = p.indent[:k-1], p.path[:k-1]
	}
	if isValue {
		p.report.set(append(p.path, key), value)
	} else if len(p.path) < maxDepth {
		p.path, p.indent = append(p.path, key), append(p.indent, depth)
	}
}
