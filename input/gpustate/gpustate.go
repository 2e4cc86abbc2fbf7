// Package gpustate finds what is wrong with GPUs in what DCGM's exporter and nvidia-smi print (-q as text or XML,
// --query-gpu as CSV): the last Xid, GPUs that do not answer, uncorrectable memory errors, rows that wait to be
// remapped.
package gpustate

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// Fault is one thing that is wrong with a GPU.
type Fault struct {
	Host, Bus string
	GPU       int // index, -1 where only the address is told
	Xid       int // 0 for none
	Lost      bool
	Text      string
	Line      int
}

// What lines say: metrics of DCGM's exporter with their labels; and of nvidia-smi -q, as text and as XML, the GPU that
// the next lines are about and its uncorrectable errors.
var (
	metric = lazyre.New(`^(DCGM_FI_DEV_(?:XID_ERRORS|ECC_DBE_VOL_TOTAL|ROW_REMAP_FAILURE|ROW_REMAP_PENDING))` +
		`\{([^}]*)\}\s+([0-9.eE+]+)`)
	label = lazyre.New(`(\w+)="([^"]*)"`)
	about = lazyre.New(`^GPU (?P<bus>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-9A-Fa-f])|` +
		`<gpu id="(?P<id>[^"]+)">|` +
		`^(?:DRAM|SRAM) Uncorrectable(?: \w+)?\s*: (?P<errors>\d+)|<(?:dram|sram)_uncorrectable(?:_\w+)?>(?P<count>\d+)<`)
	lostWords = []string{"GPU is lost", "GPU has fallen off the bus", "Unable to determine the device handle"}
)

// Match reports a text of one of these tools.
func Match(data []byte) bool {
	head := data[:min(len(data), 1<<20)]
	return bytes.Contains(head, []byte("DCGM_FI_DEV_")) || bytes.Contains(head, []byte("==NVSMI LOG==")) ||
		bytes.Contains(head, []byte("<nvidia_smi_log>")) ||
		bytes.Contains(head, []byte("ecc.errors.uncorrected.")) || bytes.Contains(head, []byte("GPU is lost"))
}

const maxTroubles = 1 << 14

// Read finds all troubles of a text.
func Read(data []byte) []Fault {
	r := &reader{column: -1}
	for line := range bytes.Lines(data) {
		r.n++
		if len(line) > 1<<14 {
			line = line[:1<<14]
		}
		if len(r.list) >= maxTroubles {
			break
		}
		r.line(strings.TrimSpace(string(line)))
	}
	return r.list
}

type reader struct {
	list     []Fault
	n        int
	bus      string
	volatile bool // counters since the driver was loaded, not of the GPU's life
	column   int  // of uncorrected errors in CSV
}

func (r *reader) addFault(t Fault) {
	t.Line = r.n
	r.list = append(r.list, t)
}

func (r *reader) line(text string) {
	if m := metric.FindStringSubmatch(text); m != nil {
		r.metric(m)
		return
	}
	for _, w := range lostWords {
		if strings.Contains(text, w) {
			r.addFault(Fault{Bus: r.bus, GPU: -1, Lost: true, Text: text[:min(len(text), 300)]})
			return
		}
	}
	errors := ""
	if g := about.Groups(text); g["bus"]+g["id"] != "" {
		r.bus, r.volatile = g["bus"]+g["id"], false
		return
	} else if r.volatile {
		errors = g["errors"] + g["count"]
	}
	switch {
	case text == "Volatile", strings.HasPrefix(text, "<volatile>"):
		r.volatile = true
	case text == "Aggregate", strings.HasPrefix(text, "<aggregate>"):
		r.volatile = false
	case strings.Contains(text, "ecc.errors.uncorrected.volatile.total"):
		for i, name := range strings.Split(text, ",") {
			if strings.HasPrefix(strings.TrimSpace(name), "ecc.errors.uncorrected.volatile.total") {
				r.column = i
			}
		}
		return
	}
	if cells := strings.Split(text, ","); errors == "" && r.column >= 0 && len(cells) > r.column {
		errors = strings.TrimSpace(cells[r.column])
	}
	if n, err := strconv.Atoi(errors); err == nil && n > 0 {
		r.addFault(Fault{
			Bus: r.bus, GPU: -1, Text: fmt.Sprintf("%d uncorrectable memory errors since the driver was loaded", n),
		})
	}
}

// metric reads a line of DCGM's exporter.
func (r *reader) metric(m []string) {
	value, err := strconv.ParseFloat(m[3], 64)
	if err != nil || value <= 0 || value > 1e9 {
		return
	}
	t := Fault{GPU: -1, Text: fmt.Sprintf("%s is %.0f", m[1], value)}
	for _, l := range label.FindAllStringSubmatch(m[2], 32) {
		switch l[1] {
		case "gpu":
			if n, err := strconv.Atoi(l[2]); err == nil {
				t.GPU = n
			}
		case "pci_bus_id":
			t.Bus = l[2]
		case "Hostname":
			t.Host = l[2]
		}
	}
	if strings.HasSuffix(m[1], "XID_ERRORS") {
		t.Xid = int(value)
	}
	r.addFault(t)
}
