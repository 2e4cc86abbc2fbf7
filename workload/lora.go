package workload

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// LoRA are adapters beside frozen weights (Hu et al. 2021): two narrow products beside each of the products that have
// one. Frozen weights have no gradients, and nothing of them is summed or updated. The zero value is none: all weights
// are trained.
type LoRA struct {
	Rank int64
	// Attention says that only the products of attention have adapters, not those of the MLP.
	Attention bool
	// Bits is that of a frozen weight in memory; 0 is that of the precision. With 4 it is QLoRA (Dettmers et al. 2023):
	// weights are brought to 16 bits before every product.
	Bits int
}

// maxRank bounds adapters.
const maxRank = 4096

// ParseLoRA reads rank=16,targets=attention,bits=4; a number alone is the rank.
func ParseLoRA(text string) (LoRA, error) {
	var l LoRA
	said := map[string]bool{}
	for _, part := range strings.Split(text, ",") {
		key, value, ok := strings.Cut(part, "=")
		if !ok {
			key, value = "rank", key
		}
		key, value = strings.ToLower(strings.TrimSpace(key)), strings.ToLower(strings.TrimSpace(value))
		if key == "r" {
			key = "rank"
		}
		if said[key] {
			return l, fmt.Errorf("lora %q: %s is given twice", text, key)
		}
		said[key] = true
		n, err := strconv.ParseInt(value, 10, 64)
		switch {
		case key == "rank" && err == nil && n >= 1 && n <= maxRank:
			l.Rank = n
		case key == "bits" && err == nil && (n == 4 || n == 8 || n == 16):
			l.Bits = int(n)
		case key == "targets" && (value == "attention" || value == "all"):
			l.Attention = value == "attention"
		case key == "alpha" || key == "dropout": // of every configuration; no time depends on them
			if v, err := strconv.ParseFloat(value, 64); err != nil || v < 0 || key == "dropout" && v >= 1 {
				return l, fmt.Errorf("lora %q: %q; expected a number, of dropout below 1 (neither changes the time of a step)",
					text, part)
			}
		default:
			return l, fmt.Errorf("lora %q: %q; expected rank=1 to %d, targets=all or attention, bits=4, 8 or 16", text, part,
				maxRank)
		}
	}
	if l.Rank == 0 {
		return l, fmt.Errorf("lora %q: no rank; expected rank=16", text)
	}
	return l, nil
}

// Frozen says that weights are not trained, only adapters beside them.
func (l LoRA) Frozen() bool { return l.Rank > 0 }

// frozenBits is that of a frozen weight: 16 where nobody says.
func (l LoRA) frozenBits() int { return cmp.Or(l.Bits, 16) }

// RefusesLoRA reports that a framework does not train such adapters, and which ones do; nil where it does.
func (f *Framework) RefusesLoRA(l LoRA) error {
	if !l.Frozen() || slices.Contains(f.Adapters, l.frozenBits()) {
		return nil
	}
	return &Refusal{f, f.missesLoRA(l), f.Source}
}

// missesLoRA is why a framework does not train such adapters.
func (f *Framework) missesLoRA(l LoRA) string {
	var able []string
	for _, name := range FrameworkNames() {
		if rows := frameworkRows(name); slices.Contains(rows[len(rows)-1].Adapters, l.frozenBits()) {
			able = append(able, name)
		}
	}
	if len(f.Adapters) == 0 {
		return fmt.Sprintf("--lora %s: it trains no adapters; these do: %s", l, strings.Join(able, ", "))
	}
	return fmt.Sprintf("--lora %s: it has no frozen weights of %d bits; these do: %s", l, l.frozenBits(),
		strings.Join(able, ", "))
}

// String is what ParseLoRA reads.
func (l LoRA) String() string {
	if !l.Frozen() {
		return ""
	}
	text := fmt.Sprintf("rank=%d", l.Rank)
	if l.Attention {
		text += ",targets=attention"
	}
	if l.Bits > 0 {
		text += fmt.Sprintf(",bits=%d", l.Bits)
	}
	return text
}

// adapts says whether a product of a block has an adapter: experts, routers and the head have none.
func (l LoRA) adapts(p *Part, afterAttention bool) bool {
	if !l.Frozen() || p.Kind != Matmul || p.Experts > 0 || p.Cut == Whole || p.Once {
		return false
	}
	return !l.Attention || !afterAttention && !strings.HasPrefix(p.Name, "mlp")
}

// Adapted are the names of the products that have adapters, as the modules of a layer are called, each once.
func (j *Job) Adapted() []string {
	var names []string
	for i := range j.Model.Blocks {
		b := &j.Model.Blocks[i]
		for k := range b.Parts {
			if p := &b.Parts[k]; b.Kind == Layer && j.LoRA.adapts(p, false) && !slices.Contains(names, p.Name) {
				names = append(names, p.Name)
			}
		}
	}
	return names
}

// Trained is how many parameters of a block a rank has gradients of.
func (j *Job) Trained(b *Block) float64 {
	if !j.LoRA.Frozen() {
		return j.Params(b)
	}
	if b.Kind != Layer {
		return 0
	}
	tp := float64(j.Split.filled().TP)
	n := 0.0
	for i := range b.Parts {
		if p := &b.Parts[i]; j.LoRA.adapts(p, false) {
			wide, cut := float64(p.In), float64(p.Out)
			if p.Cut == ByIn {
				wide, cut = cut, wide
			}
			n += float64(j.LoRA.Rank) * (wide + cut/tp)
		}
	}
	return n
}

// Adapters is how many parameters those of the whole model have.
func (j *Job) Adapters() (n float64) {
	whole := *j
	whole.Split = Split{}
	for i := range j.Model.Blocks {
		n += whole.Trained(&j.Model.Blocks[i])
	}
	return n
}

// nf4Scales is the bits of a weight's share of its block's scale (Dettmers et al. 2023, section 3).
const nf4Scales = 0.127

// wideAdapters says that adapters are in float32 beside weights of 16 bits, and cast every input to it: PEFT's
// (autocast_adapter_dtype and LoraLayer's _cast_input_dtype, from 0.12 of July 2024 on), which the Trainer trains.
func (j *Job) wideAdapters() bool {
	f := j.Framework
	return j.LoRA.Frozen() && f != nil && f.Name == "hf" && f.Since >= "2024-07" && j.Precision.Width() == 2
}

// frozenWidth is the bytes of a weight that is not trained.
func (j *Job) frozenWidth() float64 {
	switch bits := float64(j.LoRA.Bits); {
	case bits == 4:
		return (bits + nf4Scales) / 8
	case bits > 0:
		return bits / 8
	}
	if j.Kernels == Fused && j.Precision.Low() { // kept as products take them (fp8_params of NeMo's recipes)
		return 1
	}
	return j.ParamWidth()
}
