package hardware

import (
	"maps"
	"slices"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// GPUModel is one row of the catalogue of accelerators. Peaks are dense, with
// fp32 accumulation where the maker distinguishes.
type GPUModel struct {
	Name   string   `json:"name"`  // short name, also a preset: a100-80
	Title  string   `json:"title"` // as the driver prints it: NVIDIA A100-SXM4-80GB
	Vendor string   `json:"vendor"`
	Names  []string `json:"names,omitempty"`   // further spellings seen in tools and documents
	PCI    []string `json:"pci_ids,omitempty"` // vendor:device
	SM     int      `json:"sm,omitempty"`      // compute capability ×10
	Arch   string   `json:"arch,omitempty"`    // gfx942

	Memory unit.Bytes                   `json:"memory_bytes"`
	HBM    unit.Rate                    `json:"hbm_GBps"`
	Peak   map[cluster.Dtype]unit.FLOPS `json:"dense_peak_TFLOPS"`

	// Link is one direction of one NVLink, xGMI or RoCE link of the chip, Links how
	// many it has. Zero: none.
	LinkKind cluster.LinkKind `json:"link_kind,omitempty"`
	Link     unit.Rate        `json:"link_GBps,omitempty"`
	Links    int              `json:"links,omitempty"`

	PCIeGen int         `json:"pcie_gen"`
	Lanes   int         `json:"pcie_lanes"`
	GDR     cluster.Tri `json:"gdr,omitempty"` // GPUDirect RDMA or its like
	Source  string      `json:"source"`
	Note    string      `json:"note,omitempty"`

	// TDP is the power that it may draw, with who says so. Zero: not known.
	TDP       unit.Power `json:"tdp_W,omitempty"`
	TDPSource string     `json:"tdp_source,omitempty"`
}

// GPUs lists the accelerators of the catalogue.
func GPUs() []GPUModel {
	return powered(slices.Concat(nvidiaOld(), nvidiaNew(), nvidiaCards(), amdGPUs(), intelGPUs()))
}

// peak lists dense peaks in TFLOPS in the order of the data sheets; 0 leaves a
// format out.
func peak(fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8 float64) map[cluster.Dtype]unit.FLOPS {
	m := make(map[cluster.Dtype]unit.FLOPS)
	for i, v := range []float64{fp64, fp32, tf32, fp16, bf16, fp8, fp4, int8} {
		if v > 0 {
			d := []cluster.Dtype{cluster.FP64, cluster.FP32, cluster.TF32, cluster.FP16, cluster.BF16, cluster.FP8, cluster.FP4, cluster.INT8}[i]
			m[d] = unit.FLOPS(v) * unit.TFLOPS
		}
	}
	return m
}

// gpuIndex is the catalogue prepared for look-ups. It is built once and never
// changed.
type gpuIndex struct {
	models []GPUModel
	names  []gpuName
	pci    map[string]int
	short  map[string]int
}

type gpuName struct {
	words []string
	model int
}

var gpuTable = sync.OnceValue(func() *gpuIndex {
	x := &gpuIndex{models: GPUs(), pci: make(map[string]int), short: make(map[string]int)}
	for i, m := range x.models {
		x.short[m.Name] = i
		for _, id := range m.PCI {
			x.pci[id] = i
		}
		for _, n := range append([]string{m.Name, m.Title}, m.Names...) {
			x.names = append(x.names, gpuName{words(n), i})
		}
	}
	return x
})

// row is a copy that the caller may change.
func (x *gpuIndex) row(i int) GPUModel {
	m := x.models[i]
	m.Peak = maps.Clone(m.Peak)
	m.Names, m.PCI = slices.Clone(m.Names), slices.Clone(m.PCI)
	return m
}

// GPUByPCI finds a GPU by what it answers on the bus, "10de" and "20b2" (an 0x
// in front does not matter).
func GPUByPCI(vendor, device string) (GPUModel, bool) {
	x := gpuTable()
	i, ok := x.pci[pciKey(vendor, device)]
	if !ok {
		return GPUModel{}, false
	}
	return x.row(i), true
}

func pciKey(vendor, device string) string {
	clean := func(s string) string { return strings.TrimPrefix(strings.ToLower(strings.TrimSpace(s)), "0x") }
	return clean(vendor) + ":" + clean(device)
}

// GPUByName finds a GPU by the name a tool or a person gives it: "NVIDIA
// A100-SXM4-80GB", "Tesla V100-SXM2-32GB", "H100 80GB HBM3", "a100-80". Words
// after the name are allowed; a word that makes it another product (Laptop, Ti)
// is not.
func GPUByName(name string) (GPUModel, bool) {
	want := words(name)
	if len(want) == 0 || len(want) > 32 {
		return GPUModel{}, false
	}
	x := gpuTable()
	best, length := -1, 0
	for _, n := range x.names {
		if k := len(n.words); k > length && k <= len(want) && slices.Equal(n.words, want[:k]) {
			best, length = n.model, k
		}
	}
	if best < 0 || slices.ContainsFunc(want[length:], otherProduct) {
		return GPUModel{}, false
	}
	return x.row(best), true
}

// words cuts a product name into lower-case words and drops those that name no
// product.
func words(s string) []string {
	if len(s) > 200 {
		return nil
	}
	fields := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	return slices.DeleteFunc(fields, func(w string) bool {
		switch w {
		case "nvidia", "amd", "intel", "habana", "tesla", "instinct", "geforce", "quadro", "radeon", "corporation", "inc":
			return true
		}
		return false
	})
}

// otherProduct reports a word that turns a name into that of another chip.
func otherProduct(word string) bool {
	switch word {
	case "laptop", "mobile", "ti", "super", "d", "max", "maxq", "ada", "embedded", "cnx":
		return true
	}
	return false
}
