package workload

import (
	"cmp"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
)

//go:embed data/models.csv
var modelsCSV string

// modelRow is a row of models.csv.
type modelRow struct {
	Name         string `csv:"name"`
	Title        string `csv:"title"`
	Architecture string `csv:"architecture"`
	Dims
	Seq       int64  `csv:"seq"`
	Patch     int64  `csv:"patch,optional"`
	WordWidth int64  `csv:"word_width,optional"`
	Stages    stages `csv:"stages,optional"`
	Latent
	Source          string `csv:"source"`
	Published       int64  `csv:"published_params"`
	Unit            int64  `csv:"published_unit,optional"` // that Published is rounded to; 0: exact
	PublishedSource string `csv:"published_source"`
	Note            string `csv:"note,optional"`
	Unpriced        string `csv:"unpriced,optional"`
}

// rows are the catalogue, parsed once. Blocks are made when a model is asked for.
var rows = csvtable.Once[modelRow]("workload/data/models.csv", modelsCSV)

// architectures are those whose blocks are made otherwise than of the rows of parts.csv.
var architectures = map[string]func(r *modelRow) []Block{
	"resnet": func(r *modelRow) []Block { return ResNet(r.Stages) },
	"vgg16":  func(*modelRow) []Block { return VGG16() },
}

// blocks are those of a row.
func (r *modelRow) blocks(d Dims) []Block {
	if own := architectures[r.Architecture]; own != nil {
		return own(r)
	}
	x := newDesign(d, r.Architecture)
	maps.Copy(x.sizes, sizes{
		"patch": r.Patch, "words": cmp.Or(r.WordWidth, d.Hidden), "q_lora_rank": r.Q, "kv_lora_rank": r.KV,
		"qk_nope_head_dim": r.Plain, "qk_rope_head_dim": r.Rotary, "v_head_dim": r.Value,
	})
	return x.blocks()
}

// stages are the numbers of bottlenecks in the four stages of a ResNet: 3|4|6|3.
type stages [4]int64

// UnmarshalText reads what the table writes.
func (s *stages) UnmarshalText(text []byte) error {
	parts := strings.Split(string(text), "|")
	if len(parts) != len(s) {
		return fmt.Errorf("%q; expected four numbers such as 3|4|6|3", text)
	}
	for i, p := range parts {
		n, err := strconv.ParseInt(p, 10, 64)
		if err != nil {
			return err
		}
		s[i] = n
	}
	return nil
}

func (r *modelRow) model() Model {
	d := r.filled()
	m := Model{
		Name: r.Name, Title: r.Title, Dims: d, Seq: r.Seq, Blocks: r.blocks(d), Source: r.Source,
		Published: r.Published, PublishedSource: r.PublishedSource, Note: r.Note, Unpriced: r.Unpriced,
	}
	if r.Architecture == "dit" {
		m.Notes = []string{r.Name + ": no published step of a diffusion model was used to fit or to check predictions; the " +
			"error bar is that of other models"}
	}
	if r.Unit > 0 {
		m.Rounded = float64(r.Unit) / 2 / float64(r.Published)
	}
	return m
}

// Models are the models that are known by name, families together, small ones first.
func Models() []Model {
	list := make([]Model, len(rows()))
	for i := range list {
		list[i] = rows()[i].model()
	}
	return list
}

// Names are the names of the models.
func Names() []string {
	list := make([]string, len(rows()))
	for i := range list {
		list[i] = rows()[i].Name
	}
	return list
}

// aliases are names by which Hugging Face and others know models of the catalogue, where letters and digits alone do
// not tell.
var aliases = map[string]string{
	"gpt2-small":        "gpt2",
	"bert-base-uncased": "bert-base", "bert-base-cased": "bert-base", "bert-large-uncased": "bert-large",
	"bert-large-cased":     "bert-large",
	"vit-base-patch16-224": "vit-b16", "vit-base-patch16-224-in21k": "vit-b16", "vit-large-patch16-224": "vit-l16",
	"vit-large-patch16-224-in21k": "vit-l16", "vit-huge-patch14-224-in21k": "vit-h14",
}

// Find is the model of a name.
func Find(name string) (*Model, error) {
	want := strings.ToLower(name)
	want = cmp.Or(aliases[want[strings.LastIndexByte(want, '/')+1:]], want)
	longer := slices.DeleteFunc(Names(), func(n string) bool { return !strings.HasPrefix(n, want+"-") })
	if len(longer) == 1 && !slices.Contains(Names(), want) { // qwen3-235b is qwen3-235b-a22b alone
		want = longer[0]
	}
	for i := range rows() {
		if r := &rows()[i]; r.Name == want {
			m := r.model()
			return &m, nil
		}
	}
	if near := Near(name); len(near) > 0 {
		return nil,
			fmt.Errorf("model %q is unknown; did you mean %s? busbar list models lists all", name, strings.Join(near, ", "))
	}
	return nil, fmt.Errorf("model %q is unknown; busbar list models lists all %d", name, len(rows()))
}

// Bounds of what is suggested instead of a name that is unknown.
const (
	mostNear = 5
	alike    = 5 // letters that a name which was meant begins with
)

// Near are the models whose names differ least from one that is unknown, or begin as it does; the nearest first.
func Near(name string) (list []string) {
	want := strings.ToLower(name[strings.LastIndexByte(name, '/')+1:])
	if len(want) < 2 || len(want) > 60 {
		return nil
	}
	far := map[string]int{}
	for i := range rows() {
		r := rows()[i].Name
		d := min(words.Distance(want, r), 1+words.Distance(want, r[:min(len(r), len(want))]))
		if d <= max(1, len(want)/4) || strings.HasPrefix(r, want[:min(len(want), alike)]) {
			far[r], list = d, append(list, r)
		}
	}
	slices.SortStableFunc(list, func(a, b string) int { return cmp.Compare(far[a], far[b]) })
	return list[:min(len(list), mostNear)]
}

// FindHub is the model that Hugging Face calls so (meta-llama/Llama-3.1-8B-Instruct): by letters and digits alone,
// without who published it and what it was trained for after; nil where there is none or several.
func FindHub(name string) *Model {
	want := hubName(name)
	var found *Model
	for i := range rows() {
		if r := &rows()[i]; want != "" && hubName(r.Name) == want {
			if found != nil {
				return nil
			}
			m := r.model()
			found = &m
		}
	}
	return found
}

// hubDate is the date or release that publishers put behind a name: -2507, -v0.1.
var hubDate = lazyre.New(`-(2[3-9](0[1-9]|1[0-2])|v[01][0-9.]*)$`)

func hubName(name string) string {
	name = strings.ReplaceAll(strings.ToLower(name[strings.LastIndexByte(name, '/')+1:]), " ", "-")
	name = strings.TrimPrefix(hubDate.ReplaceAllString(name, ""), "meta-")
	for _, s := range []string{"-hf", "-instruct", "-chat", "-base", "-it", "-pt", "-thinking"} {
		name = strings.TrimSuffix(name, s)
	}
	return strings.Map(func(r rune) rune {
		if r == '-' || r == '_' {
			return -1
		}
		return r
	}, name)
}
