package nvsmi

import (
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/gather"
	"busbar.dev/input/internal/num"
	"busbar.dev/unit"
)

const smiFormat = "nvidia-smi"

// MatchSMI reports whether data holds the table that nvidia-smi prints by itself.
func MatchSMI(data []byte) bool {
	return gather.Find(data, "|", func(text string) bool {
		return smiGPU(bars(text), 0) != nil
	})
}

// ReadSMI reads the plain table: index, name, PCI address and memory.
func ReadSMI(name string, r io.Reader) (*cluster.Fragment, error) {
	s := newReader(smiFormat)
	return s.read(name, r, s.smiLine, "no table of GPUs found; expected rows such as | 0 NVIDIA H100 On | "+
		"00000000:06:00.0 Off |; save the output of nvidia-smi")
}

// smiLine takes a row of the table and reports whether it is one.
func (s *reader) smiLine(prefix, text string, num int) bool {
	cells := bars(text)
	if len(cells) < 2 {
		return false
	}
	host := s.heads.Host(prefix)
	if g := smiGPU(cells, num); g != nil {
		if strings.HasSuffix(g.Model.Value, "...") {
			s.warns.Addf(num, "the name %q is cut short; nvidia-smi -L prints it whole", g.Model.Value)
		}
		s.at[host] = s.noteGPU(host, g)
		return true
	}
	_, total, _ := strings.Cut(cells[1], "MiB /") // "  0MiB /  81559MiB "
	if g, memory := s.at[host], mebibytes(strings.TrimSpace(total)); g != nil && memory > 0 {
		g.GPU.Memory = board.Fact(memory, "")
		s.at[host] = nil
	}
	return true
}

// bars cuts a table row at its bars; nil for a line that is none.
func bars(text string) []string {
	text = strings.TrimSpace(text)
	if len(text) < 2 || len(text) > 512 || text[0] != '|' {
		return nil
	}
	return strings.Split(strings.Trim(text, "|"), "|")
}

// smiGPU reads "  0  NVIDIA H100 80GB HBM3  On " and "  00000000:06:00.0 Off "; nil: it is none.
func smiGPU(cells []string, line int) *gpu {
	if len(cells) < 2 {
		return nil
	}
	w, bus := strings.Fields(cells[0]), strings.Fields(cells[1])
	g := newGPU(line)
	if len(w) < 3 || len(bus) < 1 || !g.set("index", w[0]) || !g.set("pci", bus[0]) {
		return nil
	}
	if name := strings.Join(w[1:len(w)-1], " "); name != "ERR!" { // of a GPU that does not answer
		g.Model = cluster.FromRead(name, "")
	}
	return g
}

// mebibytes reads "81559MiB", "81559 MiB" or, where a header names the unit,
// "81559"; 0 when it is none.
func mebibytes(s string) unit.Bytes {
	return unit.Bytes(num.Or(strings.TrimSuffix(s, "MiB"), 1, 1<<30, 0)) * unit.MiB
}
