package truth

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/workload"
)

// model is the network: the dimensions that the source states, what it does not state from the catalogue by its name,
// and the family that its name and its number of parameters say.
func (t *Training) model() (*workload.Model, error) {
	name := strings.ToLower(t.Model.Name)
	known := t.known()
	if known != nil && known.Replicated() {
		m := *known
		m.Seq = cmp.Or(t.Model.Seq, m.Seq)
		return &m, nil
	}
	if pictures.MatchString(name) {
		return nil, fmt.Errorf("%s: it is no language model, and not among the others that are priced (busbar models lists "+
			"them)", t.Model.Name)
	}
	if t.Model.Layers == 0 || t.Model.Hidden == 0 {
		if known == nil {
			return t.guessed()
		}
		t.Assumed = append(t.Assumed, "the dimensions of "+known.Title)
		m := *known
		m.Seq = t.Model.Seq
		return &m, nil
	}
	if strings.Contains(t.Source, "DeepLearningExamples") && strings.Contains(name, "bert") && t.Model.Seq == 512 {
		return nil, fmt.Errorf("%s: sequences run without their padding, and how long they are is not stated", t.Model.Name)
	}
	d := t.dims(known)
	if err := d.Check(); err != nil {
		return nil, err
	}
	return &workload.Model{Name: t.Model.Name, Dims: d, Seq: d.Context, Blocks: t.blocks(name, d)}, nil
}

// pictures are names of what is no language model.
var pictures = lazyre.New(
	`resnet|diffusion|sdxl|\bflux|u-?net|retinanet|ssd\b|dlrm|r-?gat|\bgnn|rnn-?t|\bwan[ -]?2|\bdit\b|mask ?r-?cnn|\bvit\b|efficientnet`)

// known is the model of the catalogue that the run's name is of; nil where there is none, or it is of another size.
func (t *Training) known() *workload.Model {
	m := workload.Like(t.Model.Name)
	if m != nil && t.Model.Params > 0 && math.Abs(math.Log(float64(m.Params())/t.Model.Params)) > 0.3 {
		return nil
	}
	return m
}

// guessed is a model of which only the number of parameters is known: a dense decoder in the proportions of GPT-3.
func (t *Training) guessed() (*workload.Model, error) {
	x := &t.Model
	if x.Params <= 0 || x.Experts > 0 || x.Active > 0 || x.Scans > 0 {
		return nil, fmt.Errorf("%s: the source does not state its layers and width, and the catalogue has no such model "+
			"(busbar models lists it)", x.Name)
	}
	word := fmt.Sprintf("params=%.0f", x.Params)
	for _, f := range []struct {
		name string
		n    int64
	}{{"layers", x.Layers}, {"hidden", x.Hidden}, {"vocab", x.Vocab}, {"context", x.Seq}} {
		if f.n > 0 {
			word += fmt.Sprintf(",%s=%d", f.name, f.n)
		}
	}
	m, err := workload.Parse(word)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", x.Name, err)
	}
	t.Assumed = append(t.Assumed,
		fmt.Sprintf("%d layers of %d units, from the number of parameters", m.Dims.Layers, m.Dims.Hidden))
	return m, nil
}

// dims are the dimensions.
func (t *Training) dims(known *workload.Model) workload.Dims {
	x := &t.Model
	d := workload.Dims{
		Layers: x.Layers, Hidden: x.Hidden, Heads: x.Heads, KVHeads: x.KVHeads, FFN: x.FFN, Vocab: x.Vocab, Context: x.Seq,
		HeadDim: x.HeadDim,
		Experts: x.Experts, TopK: x.TopK, Shared: x.Shared, ExpertFFN: x.ExpertFFN, Dense: x.Dense,
	}
	if known != nil && known.Dims.Layers == d.Layers && known.Dims.Hidden == d.Hidden {
		k := known.Dims
		for _, f := range []struct{ to, from *int64 }{
			{&d.Heads, &k.Heads},
			{&d.KVHeads, &k.KVHeads},
			{&d.FFN, &k.FFN},
			{&d.Vocab, &k.Vocab},
			{&d.HeadDim, &k.HeadDim},
			{&d.Experts, &k.Experts},
			{&d.TopK, &k.TopK},
			{&d.ExpertFFN, &k.ExpertFFN},
		} {
			if *f.to == 0 {
				*f.to = *f.from
			}
		}
		if x.Experts == 0 && k.Experts > 0 {
			d.Shared, d.Dense = k.Shared, k.Dense
		}
	}
	if d.Heads == 0 {
		d.Heads = max(1, d.Hidden/128)
		t.Assumed = append(t.Assumed, fmt.Sprintf("%d heads of 128", d.Heads))
	}
	d.Vocab = cmp.Or(d.Vocab, 51200)
	d.KVHeads = cmp.Or(d.KVHeads, d.Heads)
	if d.HeadDim == 0 && d.Hidden%d.Heads != 0 {
		d.HeadDim = 128
	}
	if d.FFN == 0 && d.Experts == 0 {
		d.FFN = 4 * d.Hidden
	}
	d.FFN = cmp.Or(d.FFN, max(d.ExpertFFN, 1))
	return d
}

var loraWidth = lazyre.New(`(q|kv)_lora\s*(\d+)`)

// latent are the widths of latent attention, where the source's words name one: what they leave open is DeepSeek's.
func (t *Training) latent() (workload.Latent, bool) {
	words := strings.ToLower(t.Model.Attention)
	if !strings.Contains(words, "mla") && !strings.Contains(words, "latent") {
		return workload.Latent{}, false
	}
	a := workload.Latent{Q: 1536, KV: 512, Plain: 128, Rotary: 64, Value: 128}
	for _, m := range loraWidth.FindAllStringSubmatch(words, -1) {
		n, err := strconv.ParseInt(m[2], 10, 64)
		if err != nil || n < 1 || n > 1<<20 {
			continue
		}
		if m[1] == "q" {
			a.Q = n
		} else {
			a.KV = n
		}
	}
	return a, true
}

// blocks are those of the family.
func (t *Training) blocks(name string, d workload.Dims) []workload.Block {
	x := &t.Model
	if a, ok := t.latent(); ok && d.Experts > 0 {
		return workload.DeepSeek(d, a, true)
	}
	if x.Scans > 0 {
		m := workload.Mixers{
			Scans: x.Scans, Attentions: x.Attending, MLPs: x.MLPs, Experts: x.Mixtures, Latent: x.Latent, SharedFFN: x.SharedFFN,
		}
		if m.Layers() == d.Layers {
			m.Gated = !strings.Contains(name, "nemotron")
			return workload.Hybrid(d, withKnown(m, t.known()))
		}
		t.Assumed = append(t.Assumed, "all layers attend: their kinds do not add up to the layers")
	}
	if strings.Contains(name, "bert") {
		return workload.BERT(d)
	}
	traits := workload.Traits{Gated: true, SharedFFN: x.SharedFFN}
	if traits.SharedFFN == 0 && d.Shared > 0 {
		traits.SharedFFN = d.Shared * d.ExpertFFN
	}
	var blocks []workload.Block
	switch {
	case d.Experts > 0:
		blocks = workload.Decoder(d, traits)
	case strings.Contains(name, "nemotron"):
		blocks = workload.Nemotron(d)
	case t.gatedByCount(name, d):
		blocks = workload.Llama(d)
	default:
		blocks = workload.GPT2(d)
	}
	return sunk(windowed(blocks, x.Attention), x.Attention)
}

// withKnown takes the sizes of scans from a model of the catalogue that has some.
func withKnown(m workload.Mixers, known *workload.Model) workload.Mixers {
	if known == nil {
		return m
	}
	for i := range known.Blocks {
		for _, p := range known.Blocks[i].Parts {
			if p.Kind == workload.Scan {
				m.Heads, m.HeadDim, m.State, m.Groups = p.Heads, p.HeadDim, p.State, p.KVHeads
				return m
			}
		}
	}
	return m
}

var windowOf = lazyre.New(`(?i)window\D{0,12}(\d+)`)

// windowed gives every second layer the window that words name.
func windowed(blocks []workload.Block, words string) []workload.Block {
	m := windowOf.FindStringSubmatch(words)
	if m == nil {
		return blocks
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	if err != nil || n < 1 || n > 1<<24 {
		return blocks
	}
	alternate := strings.Contains(strings.ToLower(words), "altern") || strings.Contains(words, "/")
	for i := range blocks {
		if alternate && i%2 == 0 {
			continue
		}
		for k := range blocks[i].Parts {
			if p := &blocks[i].Parts[k]; p.Kind == workload.Attention {
				p.Window = n
			}
		}
	}
	return blocks
}

// gatedFamilies have gated MLPs, rotary positions and norms that scale.
var gatedFamilies = []string{
	"llama", "internlm", "qwen", "mistral", "mixtral", "gemma", "deepseek", "gpt-oss", "phi-3", "phi3", "phi-4", "glm",
	"olmo", "granite", "smollm", "yi-", "baichuan", "minicpm", "falcon3",
}

// sunk adds the sinks of attention that a source speaks of.
func sunk(blocks []workload.Block, words string) []workload.Block {
	for i := range blocks {
		if b := &blocks[i]; b.Kind == workload.Layer && strings.Contains(strings.ToLower(words), "sink") {
			b.Parts = append(b.Parts, workload.Part{Name: "self_attn.sinks", Kind: workload.Added, Out: 1, Suffix: "-"})
		}
	}
	return blocks
}

// gatedByCount says whether the MLP is gated: by the family's name, else by which of the two the number of parameters
// is nearer to.
func (t *Training) gatedByCount(name string, d workload.Dims) bool {
	for _, f := range gatedFamilies {
		if strings.Contains(name, f) {
			return true
		}
	}
	if t.Model.Params <= 0 || strings.Contains(name, "gpt") || t.Model.FFN == 0 {
		return false
	}
	far := func(blocks []workload.Block) float64 {
		m := workload.Model{Blocks: blocks}
		return math.Abs(math.Log(float64(m.Params()) / t.Model.Params))
	}
	return far(workload.Llama(d)) < far(workload.GPT2(d))
}
