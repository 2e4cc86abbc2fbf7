package ncclxml

import (
	"slices"
	"strings"

	"busbar.dev/input/internal/tags"
	"busbar.dev/internal/words"
)

// Limits of one text. A rack of 72 GPUs has about 1,000 elements.
const (
	maxBytes    = 256 << 20
	maxElements = 1 << 13
)

// element is one element of the format.
type element = tags.Element

// inside lists where each element may stand; NCCL ignores it elsewhere.
var inside = words.Pairs("cpu=system|pci=cpu pci|nic=cpu pci|gpu=pci|pcilink=pci|nvlink=gpu|xgmi=gpu|c2c=gpu|net=nic")

// prune leaves out what NCCL does not know, with all in it, as NCCL does.
func (b *builder) prune(e *element) {
	e.Kids = slices.DeleteFunc(e.Kids, func(k *element) bool {
		known := slices.Contains(strings.Fields(inside[k.Name]), e.Name)
		if !known && !b.odd[k.Name] {
			b.odd[k.Name] = true
			b.f.Warnf(k.Line, "", "<%.60s> inside <%s> is not part of the format; left out with all in it, as NCCL does", k.Name,
				e.Name)
		}
		return !known
	})
	for _, k := range e.Kids {
		b.prune(k)
	}
}
