package nvsmi

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

const xmlFormat = "nvidia-smi -q -x"

// Bounds of the XML: nvidia-smi writes a depth of 8 and some 400 elements a GPU.
const (
	maxDepth    = 32
	maxElements = 8 << 20
	maxText     = 512 // of one element; longer text is cut
)

var xmlStart = []byte("<nvidia_smi_log")

// MatchXML reports whether data holds the XML of nvidia-smi -q -x.
func MatchXML(data []byte) bool { return bytes.Contains(data, xmlStart) }

// ReadXML reads the XML of nvidia-smi -q -x, also one that stands inside a log
// or is cut off. Entities are never expanded.
func ReadXML(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: xmlFormat, Source: name}
	x := xmlReader{f: f, in: bufio.NewReaderSize(r, 64<<10), line: 1}
	for x.find() {
		x.v = &inventory{format: xmlFormat}
		err := x.document()
		x.finish()
		if err != nil {
			if len(f.Types) == 0 {
				return nil, fmt.Errorf("%s:%d: %w; save the output of nvidia-smi -q -x again", name, x.line, err)
			}
			f.Warnf(x.line, "", "%v; what came before is kept", err)
			break
		}
	}
	if x.err != nil && x.err != io.EOF {
		return nil, fmt.Errorf("%s: %w", name, x.err)
	}
	if len(f.Types) == 0 {
		return nil, fmt.Errorf("%s: no GPU in an nvidia_smi_log element; save the output of nvidia-smi -q -x", name)
	}
	return f, nil
}

type xmlReader struct {
	f        *cluster.Fragment
	v        *inventory
	in       *bufio.Reader
	line     int
	err      error
	elements int
	gpus     []*gpu
	attached int
}

// find moves behind the start tag's name of the next document.
func (x *xmlReader) find() bool {
	for {
		b, err := x.in.ReadSlice('<')
		x.line += bytes.Count(b, []byte{'\n'})
		if err == bufio.ErrBufferFull {
			continue
		}
		if err != nil {
			x.err = err
			return false
		}
		if next, _ := x.in.Peek(len(xmlStart) - 1); bytes.Equal(next, xmlStart[1:]) {
			return true
		}
	}
}

// document reads one nvidia_smi_log element.
func (x *xmlReader) document() error {
	// The decoder takes single bytes from a reader that can give them, so that what
	// follows the element is still there for find.
	in := &joined{head: []byte{'<'}, r: x.in}
	d := xml.NewDecoder(in)
	d.Strict = false
	first := x.line
	defer func() {
		line, _ := d.InputPos()
		x.line = first + line - 1
	}()
	var path []string
	var text []byte
	var at *gpu
	x.gpus, x.attached = nil, 0
	for {
		tok, err := d.RawToken()
		if err != nil {
			if err == io.EOF {
				return fmt.Errorf("the text ends inside nvidia_smi_log")
			}
			return fmt.Errorf("broken XML: %w", err)
		}
		switch tok := tok.(type) {
		case xml.StartElement:
			if x.elements++; x.elements > maxElements || len(path) >= maxDepth {
				return fmt.Errorf("more than %d elements or %d levels; expected the XML of nvidia-smi", maxElements, maxDepth)
			}
			path = append(path, tok.Name.Local)
			text = text[:0]
			if len(path) == 2 && tok.Name.Local == "gpu" {
				at = x.newGPU(tok.Attr)
			}
		case xml.CharData:
			if room := maxText - len(text); room > 0 {
				text = append(text, tok[:min(len(tok), room)]...)
			}
		case xml.EndElement:
			if len(path) == 0 || path[len(path)-1] != tok.Name.Local {
				return fmt.Errorf("broken XML: </%.40s> closes nothing", tok.Name.Local)
			}
			if len(path) == 2 && path[1] == "attached_gpus" {
				x.attached, _ = strconv.Atoi(strings.TrimSpace(string(text)))
			}
			if at != nil && len(path) > 2 {
				at.takeElement(strings.Join(path[2:], "/"), strings.TrimSpace(string(text)))
			}
			if path = path[:len(path)-1]; len(path) == 0 {
				return nil
			}
			if len(path) == 1 {
				at = nil
			}
			text = text[:0]
		}
	}
}

func (x *xmlReader) newGPU(attrs []xml.Attr) *gpu {
	if len(x.gpus) >= maxGPUs {
		x.v.over++
		return nil
	}
	g := &gpu{index: -1, line: x.line}
	for _, a := range attrs {
		if a.Name.Local == "id" {
			g.pci, _ = cluster.ParsePCI(a.Value)
		}
	}
	x.gpus = append(x.gpus, g)
	return g
}

// takeElement stores the text of an element by its path below gpu.
func (g *gpu) takeElement(path, text string) {
	n, err := strconv.Atoi(strings.TrimSuffix(text, "x"))
	number := err == nil && n >= 0
	switch path {
	case "product_name":
		g.name = text
	case "uuid":
		if validUUID(text) {
			g.uuid = text
		}
	case "fb_memory_usage/total":
		g.memory = mebibytes(text)
	case "c2c_mode":
		g.c2c = text == "Enabled"
	case "pci/pci_bus_id":
		if p, err := cluster.ParsePCI(text); err == nil {
			g.pci = p
		}
	case "pci/pci_device_id":
		g.id().Device, g.id().Vendor = splitID(text)
	case "pci/pci_sub_system_id":
		g.id().SubDevice, g.id().SubVendor = splitID(text)
	case "pci/pci_gpu_link_info/pcie_gen/current_link_gen":
		g.gen.now = small(n, number, 7)
	case "pci/pci_gpu_link_info/pcie_gen/max_link_gen":
		g.gen.most = small(n, number, 7)
	case "pci/pci_gpu_link_info/link_widths/current_link_width":
		g.width.now = small(n, number, 32)
	case "pci/pci_gpu_link_info/link_widths/max_link_width":
		g.width.most = small(n, number, 32)
	case "mig_devices/mig_device/index":
		if number && len(g.slices) < 64 {
			g.slices = append(g.slices, cluster.Slice{Index: n})
		}
	case "mig_devices/mig_device/uuid":
		if k := len(g.slices) - 1; k >= 0 && validUUID(text) {
			g.slices[k].UUID = text
		}
	}
}

func (g *gpu) id() *cluster.PCIID {
	if g.pciID == nil {
		g.pciID = &cluster.PCIID{}
	}
	return g.pciID
}

// splitID cuts "233510DE" (also "0x233510DE") into device 2335 and vendor 10de.
func splitID(s string) (device, vendor string) {
	s = strings.ToLower(strings.TrimPrefix(s, "0x"))
	if len(s) != 8 || strings.Trim(s, "0123456789abcdef") != "" {
		return "", ""
	}
	return s[:4], s[4:]
}

// finish files the GPUs of a document. nvidia-smi lists them in the order of
// their index, which it does not print; the place counts if all are there.
func (x *xmlReader) finish() {
	for i, g := range x.gpus {
		if x.attached == len(x.gpus) {
			g.index = i
		}
		x.v.noteGPU("", *g)
	}
	x.v.addTo(x.f)
}

// joined reads head and then r, byte by byte or in pieces.
type joined struct {
	head []byte
	r    *bufio.Reader
}

func (j *joined) ReadByte() (byte, error) {
	if len(j.head) > 0 {
		c := j.head[0]
		j.head = j.head[1:]
		return c, nil
	}
	return j.r.ReadByte()
}

func (j *joined) Read(p []byte) (int, error) {
	if len(j.head) > 0 && len(p) > 0 {
		n := copy(p, j.head)
		j.head = j.head[n:]
		return n, nil
	}
	return j.r.Read(p)
}
