package hardware

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/unit"
)

// GPUModel is one row of the catalogue of accelerators. Peaks are dense, with
// fp32 accumulation where the maker distinguishes.
type GPUModel struct {
	Name   string   `json:"name" csv:"name"`   // short name, also a preset: a100-80
	Title  string   `json:"title" csv:"title"` // as the driver prints it: NVIDIA A100-SXM4-80GB
	Vendor string   `json:"vendor" csv:"vendor"`
	Names  []string `json:"names,omitempty" csv:"also,optional"`      // further spellings seen in tools and documents
	PCI    []string `json:"pci_ids,omitempty" csv:"pci_ids,optional"` // vendor:device
	SM     int      `json:"sm,omitempty" csv:"sm,optional"`           // compute capability ×10
	Arch   string   `json:"arch,omitempty" csv:"arch,optional"`       // gfx942
	// Multiprocessors is the number of streaming multiprocessors. Zero: not known.
	Multiprocessors int `json:"-" csv:"multiprocessors,optional"`

	Memory unit.Bytes                   `json:"memory_bytes" csv:"memory"`
	HBM    unit.Rate                    `json:"hbm_GBps" csv:"memory_TBps"`
	Peak   map[cluster.Dtype]unit.FLOPS `json:"dense_peak_TFLOPS"`

	// Link is one direction of one NVLink, xGMI or RoCE link of the chip, Links how
	// many it has. Zero: none.
	LinkKind cluster.LinkKind `json:"link_kind,omitempty" csv:"link_kind,optional"`
	Link     unit.Rate        `json:"link_GBps,omitempty" csv:"link_GBps,optional"`
	Links    int              `json:"links,omitempty" csv:"links,optional"`

	// Form is how it is built: card, module, superchip (a module with its CPU) or chip (one with its CPU).
	Form    string      `json:"form" csv:"form"`
	PerNode int         `json:"per_node,omitempty" csv:"per_node,optional"` // GPUs of usual servers
	Bridged int         `json:"bridged,omitempty" csv:"bridged,optional"`   // cards that the bridge joins that it is sold with
	Domain  int         `json:"domain,omitempty" csv:"domain,optional"`     // GPUs of an NVLink domain of several hosts
	C2C     string      `json:"c2c,omitempty" csv:"c2c,optional"`           // the link to its CPU
	Peers   cluster.Tri `json:"peers,omitempty" csv:"peers,optional"`       // no: the driver refuses peer access
	// Typical marks the model that machines of which only the number of NVLinks is known are taken to have.
	Typical bool `json:"typical,omitempty" csv:"typical,optional"`

	PCIeGen int         `json:"pcie_gen" csv:"pcie_gen"`
	Lanes   int         `json:"pcie_lanes" csv:"pcie_lanes"`
	GDR     cluster.Tri `json:"gdr,omitempty" csv:"gdr"` // GPUDirect RDMA or its like
	Source  string      `json:"source" csv:"source"`
	Note    string      `json:"note,omitempty" csv:"note,optional"`

	// TDP is the power that it may draw, with who says so. Zero: not known.
	TDP       unit.Power `json:"tdp_W,omitempty" csv:"tdp_W,optional"`
	TDPSource string     `json:"tdp_source,omitempty" csv:"tdp_source,optional"`
}

// gpuRow is a row of gpus.csv: peaks are columns there. An empty one is a format
// that the chip does not have or the maker does not state.
type gpuRow struct {
	GPUModel
	FP64 unit.FLOPS `csv:"fp64_dense_TFLOPS,optional"`
	FP32 unit.FLOPS `csv:"fp32_dense_TFLOPS,optional"`
	TF32 unit.FLOPS `csv:"tf32_dense_TFLOPS,optional"`
	FP16 unit.FLOPS `csv:"fp16_dense_TFLOPS,optional"`
	BF16 unit.FLOPS `csv:"bf16_dense_TFLOPS,optional"`
	FP8  unit.FLOPS `csv:"fp8_dense_TFLOPS,optional"`
	FP4  unit.FLOPS `csv:"fp4_dense_TFLOPS,optional"`
	INT8 unit.FLOPS `csv:"int8_dense_TFLOPS,optional"`
}

func (r *gpuRow) model() GPUModel {
	r.Peak = map[cluster.Dtype]unit.FLOPS{
		cluster.FP64: r.FP64, cluster.FP32: r.FP32, cluster.TF32: r.TF32, cluster.FP16: r.FP16,
		cluster.BF16: r.BF16, cluster.FP8: r.FP8, cluster.FP4: r.FP4, cluster.INT8: r.INT8,
	}
	r.PerNode = cmp.Or(r.PerNode, 8)
	maps.DeleteFunc(r.Peak, func(_ cluster.Dtype, v unit.FLOPS) bool { return v == 0 })
	return r.GPUModel
}

// GPUs lists the accelerators of the catalogue.
func GPUs() []GPUModel {
	x := gpuTable()
	list := make([]GPUModel, len(x.models))
	for i := range list {
		list[i] = x.row(i)
	}
	return list
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
	rows := load[gpuRow]("gpus")
	x := &gpuIndex{pci: make(map[string]int), short: make(map[string]int)}
	for i := range rows {
		m := rows[i].model()
		x.models = append(x.models, m)
		x.short[m.Name] = i
		for _, id := range m.PCI {
			x.pci[id] = i
		}
		for _, n := range append([]string{m.Name, m.Title}, m.Names...) {
			x.names = append(x.names, gpuName{nameWords(n), i})
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
// A100-SXM4-80GB", "Tesla V100-SXM2-32GB", "H100 80GB HBM3", "8x DGX H100", "a100-80". Words
// after the name are allowed; a word that makes it another product (Laptop, Ti)
// is not, and a size of memory or a form (PCIe, NVL) that the model does not have
// leads to the variant that has it.
func GPUByName(name string) (GPUModel, bool) {
	want := nameWords(name)
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
	best = x.variant(best, want)
	if best < 0 {
		return GPUModel{}, false
	}
	return x.row(best), true
}

// variant is the model of the same chip that has the form and the size of memory which words state; -1 where the form
// is of none, the model itself where no size fits: cards with other memory than their maker gave them exist.
func (x *gpuIndex) variant(best int, want []string) int {
	fits := func(i int, memory bool) bool {
		m := &x.models[i]
		own := nameWords(m.Title + " " + m.Name)
		for _, form := range []string{"pcie", "nvl"} {
			if slices.Contains(want, form) && !slices.Contains(own, form) && !(form == "pcie" && m.Links == 0) {
				return false
			}
		}
		for _, w := range want {
			size, ok := strings.CutSuffix(strings.TrimSuffix(w, "b"), "g") // 80GB, 80G
			if n, err := strconv.Atoi(size); memory && ok && err == nil && n > 0 {
				if r := float64(m.Memory) / (float64(n) * 1e9); r < 0.97 || r > 1.15 {
					return false
				}
			}
		}
		return true
	}
	if fits(best, true) {
		return best
	}
	for _, memory := range []bool{true, false} {
		if !memory && fits(best, false) {
			return best
		}
		for i := range x.models {
			if chipOf(x.models[i].Name) == chipOf(x.models[best].Name) && fits(i, memory) {
				return i
			}
		}
	}
	return -1
}

// chipOf is the first word of a short name: a100 of a100-pcie-40.
func chipOf(name string) string {
	chip, _, _ := strings.Cut(name, "-")
	return chip
}

// nameWords cuts a product name into lower-case words and drops those that name no
// product.
func nameWords(s string) []string {
	if len(s) > 200 {
		return nil
	}
	fields := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9')
	})
	if len(fields) > 0 { // how many: 8x H100, 8xH100
		if count, rest, ok := strings.Cut(fields[0], "x"); ok && count != "" && strings.Trim(count, "0123456789") == "" {
			if fields = fields[1:]; rest != "" {
				fields = append([]string{rest}, fields...)
			}
		}
	}
	return slices.DeleteFunc(fields, func(w string) bool {
		switch w {
		case "dgx", "hgx", "gpu", "gpus", "nvidia", "amd", "intel", "habana", "tesla", "instinct", "geforce", "quadro",
			"radeon", "corporation", "inc":
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
