package workload

import (
	"cmp"
	_ "embed"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
)

//go:embed data/parts.csv
var partsCSV string

// partRow is a part of the blocks of a family of models, a block itself, or a group of parts that others have too.
type partRow struct {
	Path string   `csv:"path"` // FAMILY/BLOCK/PART, FAMILY/BLOCK, @GROUP/PART
	Kind string   `csv:"kind"`
	In   string   `csv:"in,optional"`
	Out  string   `csv:"out,optional"`
	Cut  string   `csv:"cut,optional"`
	More []string `csv:"more,optional"`
	When []string `csv:"when,optional"` // all must hold
}

// partRows are the rows by FAMILY/BLOCK and by @GROUP, the block's own first.
var partRows = sync.OnceValue(func() map[string][]partRow {
	of := map[string][]partRow{}
	for _, r := range csvtable.Must[partRow]("workload/data/parts.csv", partsCSV) {
		block := r.Path
		if r.Kind != "block" {
			block = r.Path[:strings.LastIndexByte(r.Path, '/')]
		}
		of[block] = append(of[block], r)
	}
	return of
})

var (
	partKinds = map[string]PartKind{
		"matmul": Matmul, "lookup": Lookup, "norm": Norm, "attention": Attention, "added": Added, "scan": Scan,
	}
	partCuts = map[string]Cut{"": Whole, "out": ByOut, "in": ByIn}
)

// sizes are the numbers of a model by name: its dimensions, and what members of its family differ in; what is not said
// is 0.
type sizes map[string]int64

// value is a sum of products of names and numbers. A / divides all before it.
func (s sizes) value(text string) int64 {
	sum, by, divided := strings.Cut(text, "/")
	total := int64(0)
	for _, term := range strings.Split(sum, "+") {
		product := int64(1)
		for _, factor := range strings.Split(term, "*") {
			if n, err := strconv.ParseInt(factor, 10, 64); err == nil {
				product *= n
			} else {
				product *= s[factor]
			}
		}
		total += product
	}
	if divided {
		return total / max(1, s.value(by))
	}
	return total
}

// hold reports whether conditions do: NAME is not 0, !NAME is, A!=B.
func (s sizes) hold(conditions []string) bool {
	for _, c := range conditions {
		a, b, _ := strings.Cut(c, "!=")
		if word, not := strings.CutPrefix(a, "!"); (s.value(word) != s.value(cmp.Or(b, "0"))) == not {
			return false
		}
	}
	return true
}

// part is that of a row.
func (s sizes) part(r *partRow) Part {
	p := Part{Name: r.Path[strings.LastIndexByte(r.Path, '/')+1:], Kind: partKinds[r.Kind], Cut: partCuts[r.Cut]}
	numbers := map[string]*int64{
		"heads": &p.Heads, "kv_heads": &p.KVHeads, "head_dim": &p.HeadDim, "state": &p.State, "window": &p.Window,
		"experts": &p.Experts, "top_k": &p.TopK, "in": &p.In, "out": &p.Out,
	}
	flags := map[string]*bool{
		"bias": &p.Bias, "tied": &p.Tied, "turned": &p.Turned, "single": &p.Single, "once": &p.Once, "causal": &p.Causal,
	}
	words := slices.Clone(r.More)
	for _, x := range [][2]string{{"in", r.In}, {"out", r.Out}} {
		if x[1] != "" {
			words = append(words, x[0]+"="+x[1])
		}
	}
	for _, word := range words {
		key, value, said := strings.Cut(word, "=")
		switch {
		case key == "suffix":
			p.Suffix = value
		case key == "shape":
			for _, side := range strings.Split(value, ":") {
				p.Shape = append(p.Shape, s.value(side))
			}
		case flags[key] != nil:
			*flags[key] = !said || s.value(value) != 0
		default:
			*numbers[key] = s.value(value)
		}
	}
	return p
}

// parts are those of a block or a group that the sizes have.
func (s sizes) parts(block string) (list []Part) {
	rows := partRows()[block]
	for i := range rows {
		switch r := &rows[i]; {
		case r.Kind == "block" || !s.hold(r.When):
		case r.Kind == "group":
			list = append(list, s.parts(r.Path[strings.IndexByte(r.Path, '@'):])...)
		default:
			list = append(list, s.part(r))
		}
	}
	return list
}

// layerKind is what layers of a model may differ in.
type layerKind struct {
	attends, scans, sparse bool  // it has attention, a state space or a convolution, experts
	sees                   int64 // tokens before it that a token sees; 0: all
}

// design is a family of models with the sizes of one of them.
type design struct {
	family string
	sizes
	kinds []layerKind // of layers; none: by the sizes
}

// newDesign is one of a model with such dimensions: a family of data/parts.csv, and words behind it: gated,
// shared_ffn=1024.
func newDesign(d Dims, words string) *design {
	list := strings.Fields(words)
	x := &design{family: list[0], sizes: sizes{}}
	for name, to := range d.byName() {
		x.sizes[name] = *to
	}
	for _, word := range list[1:] {
		name, value, said := strings.Cut(word, "=")
		x.sizes[name] = 1
		if said {
			x.sizes[name] = x.value(value)
		}
	}
	return x
}

// dims are the dimensions among the sizes.
func (s sizes) dims() (d Dims) {
	for name, to := range d.byName() {
		*to = s[name]
	}
	return d
}

// Blocks are those of a model with such dimensions: of a family of data/parts.csv with words for what its members
// differ in: "gpt2", "llama gated", "decoder gated shared_ffn=1024". It panics when there is no such family.
func Blocks(words string, d Dims) []Block { return newDesign(d, words).blocks() }

// blocks make the model. Layers of a kind have equal parts.
func (x *design) blocks() []Block {
	s := x.sizes
	filled := s.dims().filled()
	for name, to := range filled.byName() {
		s[name] = *to
	}
	s["q"], s["kv"] = s["heads"]*s["head_dim"], s["kv_heads"]*s["head_dim"]
	s["inner"] = cmp.Or(s["inner"], s["latent"], s["hidden"])
	s["ssm_dim"], s["state"], s["groups"] = cmp.Or(s["ssm_dim"], 64), cmp.Or(s["state"], 128), cmp.Or(s["groups"], 8)
	s["ssm_heads"] = cmp.Or(s["ssm_heads"], max(1, 2*s["hidden"]/s["ssm_dim"]))
	blocks := []Block{x.block("entry", Entry)}
	made := map[layerKind]Block{}
	for i, kind := range x.layerKinds() {
		b, ok := made[kind]
		if !ok {
			s["attends"], s["scans"], s["sparse"], s["sees"] = one(kind.attends), one(kind.scans), one(kind.sparse), kind.sees
			b = x.block("layer", Layer)
			made[kind] = b
		}
		b.Name, b.Parts = fmt.Sprintf(b.Name, i), slices.Clone(b.Parts)
		blocks = append(blocks, b)
	}
	return append(blocks, x.block("exit", Exit))
}

func one(yes bool) int64 {
	if yes {
		return 1
	}
	return 0
}

func (x *design) block(name string, kind BlockKind) Block {
	path := x.family + "/" + name
	b := Block{Kind: kind, Parts: x.parts(path)}
	if row := partRows()[path][0]; row.Kind == "block" {
		b.Name = row.More[0]
	}
	return b
}

// layerKinds are those of all layers: as they were said, as a hybrid spreads them, or all with attention, of which some
// have experts.
func (x *design) layerKinds() []layerKind {
	if x.kinds != nil {
		return x.kinds
	}
	if x.family == "hybrid" {
		return x.spread()
	}
	list := make([]layerKind, x.sizes["layers"])
	for i := range list {
		list[i] = layerKind{attends: true, sparse: x.hasExperts(int64(i))}
		if full := x.sizes["full"]; full == 0 || int64(i+1)%full != 0 {
			list[i].sees = x.sizes["window"]
		}
	}
	return list
}

// hasExperts reports a layer that has some: after those that have none, every so-manieth.
func (s sizes) hasExperts(i int64) bool {
	every := s["every"]
	return s["experts"] > 0 && i >= s["dense_layers"] && (every == 0 || (i+1)%every == s["from"]%every)
}

// hybridKinds are the layers of a hybrid, each of one thing alone, by the letters of Nemotron-H's config.json: scans,
// MLPs, experts, attention.
const hybridLetters = "M-E*"

var hybridKinds = []layerKind{{scans: true}, {}, {sparse: true}, {attends: true}}

// spread are as many layers of each kind as the sizes say, each spread evenly over all.
func (x *design) spread() (list []layerKind) {
	all := []int64{x.sizes["scan_layers"], x.sizes["mlp_layers"], x.sizes["expert_layers"], x.sizes["attention_layers"]}
	left, n := slices.Clone(all), x.sizes["layers"]
	for i := range n {
		best, lag := 0, -1.0
		for k := range left {
			due := float64(all[k])*float64(i+1)/float64(n) - float64(all[k]-left[k])
			if left[k] > 0 && due > lag {
				best, lag = k, due
			}
		}
		left[best]--
		list = append(list, hybridKinds[best])
	}
	return list
}
