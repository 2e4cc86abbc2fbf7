package nvsmi

import (
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
func MatchXML(data []byte) bool { return lines.Has(data, "<nvidia_smi_log") }

// ReadXML reads the XML of nvidia-smi -q -x, also one that stands inside a log
// or is cut off. Entities are never expanded.
func ReadXML(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: xmlFormat, Source: name}
	var x report
	line := 0
	finish := func() {
		v := &inventory{format: xmlFormat}
		v.noteReport("", &x)
		v.addTo(f)
	}
	err := lines.Each(name, r, func(num int, text string) error {
		for t := range tags.All(text) {
			if open := len(x.path) > 0; open || t.Name == "nvidia_smi_log" {
				line = num
				if x.element(t, num); open && len(x.path) == 0 {
					finish()
				}
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if len(x.path) > 0 {
		finish()
		f.Warnf(line, "", "the text ends inside nvidia_smi_log; what came before is kept")
	}
	if len(f.Types) == 0 {
		return nil, fmt.Errorf("%s: no GPU in an nvidia_smi_log element; save the output of nvidia-smi -q -x", name)
	}
	return f, nil
}

// element takes in a tag. nvidia-smi writes an element a line, and text in the innermost alone.
func (r *report) element(t *tags.Token, num int) {
	last := len(r.path) - 1
	switch {
	case t.Kind == tags.Open && len(r.path) < maxDepth:
		r.path, r.text = append(r.path, t.Name), strings.TrimSpace(t.Text)
		if len(r.path) == 2 && t.Name == "gpu" {
			r.newGPU(t.Get("id"), num)
		}
	case t.Kind == tags.Empty && last == 0 && t.Name == "gpu":
		r.newGPU(t.Get("id"), num)
	case t.Kind != tags.Close || last < 0 || r.path[last] != t.Name:
	case last == 1 && t.Name == "attached_gpus":
		r.attached, _ = strconv.Atoi(r.text)
		r.path = r.path[:last]
	default:
		if last > 1 && r.path[1] == "gpu" {
			r.set(r.path[2:], r.text)
		}
		r.path, r.text = r.path[:last], ""
	}
}

// report is what nvidia-smi -q says of one machine, as text or XML. It lists the GPUs in the order of their index,
// which it does not print.
type report struct {
	gpus     []*gpu
	attached int
	over     int      // GPUs left out
	path     []string // the open elements or sections
	text     string   // of the innermost element
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

// set gives the GPU at hand the value of a key, which stands behind the sections that it is in.
func (r *report) set(path []string, value string) {
	if len(r.gpus) > 0 {
		r.gpus[len(r.gpus)-1].set(fields()[strings.Join(path, "/")], value)
	}
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
