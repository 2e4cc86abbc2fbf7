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

// plainKeys are the XML's paths of what the text calls otherwise, from the section to the key.
var plainKeys = map[string]string{
	"Product Name": "product_name", "GPU UUID": "uuid", "FB Memory Usage/Total": "fb_memory_usage/total",
	"GPU C2C Mode": "c2c_mode",
	"PCI/Bus Id":   "pci/pci_bus_id", "PCI/Device Id": "pci/pci_device_id", "PCI/Sub System Id": "pci/pci_sub_system_id",
	"PCI/GPU Link Info/PCIe Generation/Current": "pci/pci_gpu_link_info/pcie_gen/current_link_gen",
	"PCI/GPU Link Info/PCIe Generation/Max":     "pci/pci_gpu_link_info/pcie_gen/max_link_gen",
	"PCI/GPU Link Info/Link Width/Current":      "pci/pci_gpu_link_info/link_widths/current_link_width",
	"PCI/GPU Link Info/Link Width/Max":          "pci/pci_gpu_link_info/link_widths/max_link_width",
	"MIG Device/Index":                          "mig_devices/mig_device/index",
}

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
		p.finish(host)
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
	attached int
	gpus     []*gpu
	sections []string // the open ones, by their depth
	indent   []int
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
		p.finish(host)
	case m != nil:
		if n = p.node(host); n == nil {
			return nil
		}
		g := &gpu{index: -1, line: num}
		g.pci, _ = cluster.ParsePCI(m[1])
		if len(n.gpus) >= maxGPUs {
			p.v.over++
			return nil
		}
		n.gpus, n.sections, n.indent = append(n.gpus, g), nil, nil
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
		n.indent, n.sections = n.indent[:k-1], n.sections[:k-1]
	}
	if !isValue {
		if len(n.sections) < maxDepth {
			n.sections, n.indent = append(n.sections, key[:min(len(key), maxText)]), append(n.indent, depth)
		}
		return
	}
	if path, ok := plainKeys[strings.Join(append(n.sections, key), "/")]; ok {
		n.gpus[len(n.gpus)-1].takeElement(path, value[:min(len(value), maxText)])
	}
}

// finish files the GPUs of a report. They come in the order of their index, which is not printed; the place counts if
// all are there.
func (p *plainReader) finish(host string) {
	n := p.at[host]
	if n == nil {
		return
	}
	for i, g := range n.gpus {
		if n.attached == len(n.gpus) {
			g.index = i
		}
		p.v.noteGPU(host, *g)
	}
	*n = plainNode{}
}
