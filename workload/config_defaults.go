package workload

import (
	_ "embed"
	"encoding/json"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
)

//go:embed data/configs.csv
var configsCSV string

// configDefaults are what transformers takes for the fields that a kind of config.json leaves out.
type configDefaults struct {
	Type   string   `csv:"type"`
	Fields []string `csv:"fields"` // NAME=NUMBER
	Source string   `csv:"source"`
}

var defaultsOfConfigs = sync.OnceValue(func() []configDefaults {
	return csvtable.Must[configDefaults]("workload/data/configs.csv", configsCSV)
})

// fill gives fields that are left out the values of transformers, and notes them.
func (c *config) fill(kind string) {
	for _, d := range defaultsOfConfigs() {
		if d.Type != kind {
			continue
		}
		var taken []string
		for _, f := range d.Fields {
			name, value, _ := strings.Cut(f, "=")
			if _, said := c.fields[name]; said || name == "rope_theta" && c.fields["rope_parameters"] != nil {
				continue
			}
			c.fields[name] = json.RawMessage(value)
			taken = append(taken, name+" "+value)
		}
		if len(taken) > 0 {
			c.note("left to the defaults of transformers: %s (%s)", strings.Join(taken, ", "), d.Source)
		}
	}
}

// further notes what a file says and a model read from it has not.
func (c *config) further() {
	if n := c.number0(0, "num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers"); n > 0 {
		c.note("the %d layers that predict further tokens (num_nextn_predict_layers) are left out; --mtp %d counts them", n, n)
	}
}

// seq is how many tokens a sequence has when nobody says: as the catalogue has it for a model of these dimensions, else at most configSeq.
func (m *Model) seq() int64 {
	for i := range rows() {
		d := rows()[i].filled()
		if d.Context = m.Dims.Context; d == m.Dims {
			return min(rows()[i].Seq, m.Dims.Context)
		}
	}
	return min(m.Dims.Context, configSeq)
}

// configSeq is the longest sequence that is taken for a config.json, whose context is often far beyond what models are trained with.
const configSeq = 4096

// mamba2 has state-space layers alone.
func mamba2(c *config) shaped {
	d := Dims{
		Layers: c.number("num_hidden_layers"), Hidden: c.number("hidden_size"), Heads: max(1, c.number("num_heads")), HeadDim: max(1, c.number("head_dim")), Vocab: c.number("vocab_size"),
		Context: c.number0(configSeq, "max_position_embeddings"),
	}
	x := Mixers{Scans: d.Layers, Heads: d.Heads, HeadDim: d.HeadDim, State: c.number("state_size"), Groups: c.number("n_groups")}
	c.narrow(x.Heads * x.HeadDim)
	c.narrow(x.State * x.Groups)
	return plain(d, func() []Block { return tiedHead(Hybrid(d, x), c.tied(false)) })
}

// tiedHead makes the head the embedding's where it is.
func tiedHead(blocks []Block, tied bool) []Block {
	exit := blocks[len(blocks)-1].Parts
	exit[len(exit)-1].Tied = tied
	return blocks
}
