package nvsmi

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/tags"
	"busbar.dev/internal/lines"
)

const xmlFormat = "nvidia-smi -q -x"

// maxDepth bounds sections; nvidia-smi writes a depth of 8.
const maxDepth = 32

// MatchXML reports whether data holds the XML of nvidia-smi -q -x.
func MatchXML(data []byte) bool { return bytes.Contains(data, []byte("<nvidia_smi_log")) }

// ReadXML reads the XML of nvidia-smi -q -x, also one that stands inside a log
// or is cut off. Entities are never expanded.
func ReadXML(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: xmlFormat, Source: name}
	x := xmlReader{f: f}
	line := 0
	err := lines.Each(name, r, func(num int, text string) error {
		for t := range tags.All(text) {
			if x.err == nil {
				line = num
				x.element(t, num)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if x.err == nil && len(x.path) > 0 {
		x.err = errors.New("the text ends inside nvidia_smi_log")
	}
	if x.err != nil {
		x.finish()
		if len(f.Types) == 0 {
			return nil, fmt.Errorf("%s:%d: %w; save the output of nvidia-smi -q -x again", name, line, x.err)
		}
		f.Warnf(line, "", "%v; what came before is kept", x.err)
	}
	if len(f.Types) == 0 {
		return nil, fmt.Errorf("%s: no GPU in an nvidia_smi_log element; save the output of nvidia-smi -q -x", name)
	}
	return f, nil
}

// xmlReader follows the elements of documents. nvidia-smi writes an element a line, and text in the innermost alone.
type xmlReader struct {
	f    *cluster.Fragment
	err  error
	path []string // open elements
	text string   // of the innermost
	report
}

// element takes in a tag.
func (x *xmlReader) element(t *tags.Token, num int) {
	last := len(x.path) - 1
	switch {
	case last < 0 && (t.Kind != tags.Open || t.Name != "nvidia_smi_log"): // around a document
		return
	case t.Kind == tags.Open || t.Kind == tags.Empty:
		x.path, x.text = append(x.path, t.Name), strings.TrimSpace(t.Text)
		if len(x.path) > maxDepth {
			x.err = fmt.Errorf("more than %d levels; expected the XML of nvidia-smi", maxDepth)
			return
		}
		if len(x.path) == 2 && t.Name == "gpu" {
			x.newGPU(t.Get("id"), num)
		}
		if t.Kind == tags.Open {
			return
		}
	case t.Kind != tags.Close:
		return
	case x.path[last] != t.Name:
		x.err = fmt.Errorf("broken XML: </%.40s> closes nothing", t.Name)
		return
	case last == 1 && t.Name == "attached_gpus":
		x.attached, _ = strconv.Atoi(x.text)
	case last > 1 && x.path[1] == "gpu" && len(x.gpus) > 0:
		x.gpus[len(x.gpus)-1].set(fields[strings.Join(x.path[2:], "/")], x.text)
	}
	if x.path, x.text = x.path[:len(x.path)-1], ""; len(x.path) == 0 {
		x.finish()
	}
}

// finish adds the machine of a document.
func (x *xmlReader) finish() {
	v := &inventory{format: xmlFormat}
	v.noteReport("", &x.report)
	v.addTo(x.f)
}

// report is what nvidia-smi -q says of one machine. It lists the GPUs in the order of their index, which it does not
// print.
type report struct {
	gpus     []*gpu
	attached int
	over     int // GPUs left out
}

// newGPU begins a GPU.
func (r *report) newGPU(address string, line int) {
	g := newGPU(line)
	g.PCI, _ = cluster.ParsePCI(address)
	if len(r.gpus) >= maxGPUs {
		r.over++
		r.gpus = r.gpus[:maxGPUs-1]
	}
	r.gpus = append(r.gpus, g)
}

// noteReport files the GPUs of a report; their place counts if all are there.
func (v *inventory) noteReport(host string, r *report) {
	for i, g := range r.gpus {
		if r.attached == len(r.gpus) {
			g.Index = i
		}
		v.noteGPU(host, g)
	}
	v.over += r.over
	*r = report{}
}
