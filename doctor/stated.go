package doctor

import (
	"cmp"
	"fmt"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// machines are the names of presets with several GPUs a node, as people write them, without what parts their words.
var machines = sync.OnceValue(func() map[string]string {
	names := map[string]string{}
	for _, p := range hardware.Presets() {
		for _, n := range append([]string{p.Name}, p.Aliases...) {
			if p.GPUs > 1 && len(n) > 4 {
				names[squeezed(n)] = p.Name
			}
		}
	}
	return names
})

func squeezed(s string) string { return strings.NewReplacer("-", "", "_", "", " ", "").Replace(s) }

// statedWord is a word of a sentence, a number in front of x, or the count behind a colon.
var statedWord = lazyre.New(`\d+(?:x |×)|[a-z0-9][a-z0-9_-]*`)

// numbers in words.
var numbers = map[string]int{"one": 1, "single": 1, "two": 2, "three": 3, "four": 4, "eight": 8, "sixteen": 16}

// mostStated bounds the nodes that are predicted.
const mostStated = 256

// stated is the machine that somebody names with its number of nodes: "2 DGX H100", "four p5 nodes", "dgx-h100:4".
func (c *Case) stated() (preset string, nodes int) {
	list := statedWord.FindAllString(strings.ToLower(c.Words), 2000)
	for i := range list {
		for n := min(3, len(list)-i); n > 0; n-- {
			name := machines()[strings.TrimSuffix(squeezed(strings.Join(list[i:i+n], "")), "s")]
			if name == "" {
				continue
			}
			if i+n < len(list) && strings.Contains(strings.ToLower(c.Words), list[i+n-1]+":"+list[i+n]) {
				nodes = atoi(list[i+n])
			}
			for j := i - 1; j >= 0 && j >= i-3 && nodes < 1; j-- {
				nodes = max(numbers[list[j]], atoi(strings.TrimRight(list[j], "x× ")))
			}
			if nodes >= 1 && nodes <= mostStated {
				return name, nodes
			}
			nodes = 0
		}
	}
	return "", 0
}

var (
	statedSize = lazyre.New(`(?i)\b(\d+(?:\.\d+)? ?[KMG]i?B?)\b([^/\w]|$)`)
	statedOp   = lazyre.New(`(?i)\b(all[-_ ]?gather|reduce[-_ ]?scatter|all[-_ ]?to[-_ ]?all)`)
)

// ofPredicted compares the best rate that is told of with what is predicted for the machine that is named: rate,
// percent, prediction, collective and size, machine.
func (c *Case) ofPredicted() *clue {
	best := 0.0
	k := &clue{}
	for _, f := range c.Figures {
		if f.Other {
			return nil // another comparison
		}
		best = max(best, f.GBps)
		k.quotes = append(k.quotes, f.Quote)
	}
	cl, nodes := c.named()
	if cl == nil || best == 0 {
		return nil
	}
	op, size, large := coll.AllReduce, unit.GiB, "a large "
	if m := statedOp.FindString(c.Words); m != "" {
		if kind, err := coll.ParseKind(strings.NewReplacer("-", "_", " ", "_").Replace(strings.ToLower(m))); err == nil {
			op = kind
		}
	}
	for _, m := range statedSize.FindAllStringSubmatch(c.Words, 8) {
		if n, err := unit.ParseBytes(strings.ReplaceAll(m[1], " ", "")); err == nil && n >= unit.KiB && n <= 16*unit.GiB {
			size, large = n, m[1]+" "
		}
	}
	want := busBandwidth(cl, nodes, cl.Types[0].Count(cluster.GPU), op, size, c.settings())
	if want <= 0 || best > 1.4*want {
		return nil
	}
	k.args = []string{
		fmt.Sprintf("%.3g", best), fmt.Sprintf("%.0f", 100*best/want), fmt.Sprintf("%.3g", want), large + op.String(),
		cl.Name,
	}
	return k
}

// named is the cluster that somebody names; nil: nobody does.
func (c *Case) named() (cl *cluster.Cluster, nodes int) {
	preset, nodes := c.stated()
	if preset == "" {
		return nil, 0
	}
	cl, err := hardware.Preset(preset, nodes)
	if err != nil {
		return nil, 0
	}
	cl.Name = fmt.Sprintf("%s:%d", preset, nodes)
	return cl, nodes
}

// busBandwidth is what is predicted with settings, in GB/s; 0 where nothing can be.
func busBandwidth(cl *cluster.Cluster, nodes, per int, op coll.Kind, size unit.Bytes, env map[string]string) float64 {
	layout, err := nccl.Block(cl, nodes, per)
	if err != nil {
		return 0
	}
	p, err := predict.New(cl, layout, nccl.Newest, env, nil)
	if err != nil {
		return 0
	}
	a, err := p.Ask(predict.Query{Kind: op, Type: coll.Float, Sizes: []unit.Bytes{size}})
	if err != nil || len(a.Rows) == 0 || a.Rows[0].Time <= 0 {
		return 0
	}
	return float64(size) / (float64(a.Rows[0].Time) / float64(unit.Second)) / 1e9 * op.BusFactor(nodes*per)
}

// statedLayout is "4 GPUs on 2 nodes", "four on two nodes".
var statedLayout = lazyre.New(
	`(?i)\b(\d+|[a-z]+) (?:GPUs? |cards? |A100s? |H100s? )?(?:on|over|across|in|of) (\d+|[a-z]+)` +
		`(?: (?:nodes?|hosts?|machines?|servers?))?\b`)

// fewerNodesSlower are two layouts of which that on fewer nodes is told to be the slower: GPUs of a node, both layouts.
func (c *Case) fewerNodesSlower() *clue {
	type layout struct {
		nodes, gpus int
		text        string
	}
	for i := range c.clauses {
		low := strings.ToLower(c.clauses[i].Text)
		var list []layout
		for _, m := range statedLayout.FindAllStringSubmatch(low, 8) {
			gpus, nodes := max(numbers[m[1]], atoi(m[1])), max(numbers[m[2]], atoi(m[2]))
			if gpus > 0 && nodes > 0 && gpus >= nodes {
				list = append(list, layout{nodes, gpus, m[0]})
			}
		}
		if len(list) < 2 {
			continue
		}
		a, b := list[0], list[1]
		if strings.Contains(low, "faster") { // "four on four are faster than four on two"
			a, b = b, a
		} else if !strings.Contains(low, "slower") && !strings.Contains(low, "longer") {
			continue
		}
		if a.nodes < b.nodes && a.gpus > a.nodes && a.gpus/a.nodes > b.gpus/b.nodes {
			return &clue{
				args:   []string{words.Plural(a.gpus/a.nodes, "GPU"), a.text, b.text},
				quotes: []finding.Quote{{Text: c.clauses[i].Text}},
			}
		}
	}
	return nil
}

// gpu is the model of the GPUs, as the catalogue knows it.
func (c *Case) gpu() string {
	for _, t := range c.Tables {
		for _, r := range t.Ranks {
			if g, ok := hardware.GPUByName(r.Model); ok {
				return g.Name
			}
		}
	}
	for _, o := range c.All(evidence.GPUName) {
		if g, ok := hardware.GPUByName(o.Arg(0)); ok {
			return g.Name
		}
	}
	if on := cmp.Or(c.Cluster, c.Given); on != nil {
		for _, t := range on.Types {
			for _, i := range t.Of(cluster.GPU) {
				if g, ok := hardware.GPUByName(t.Devices[i].Model.Value); ok {
					return g.Name
				}
			}
		}
	}
	return ""
}

// noPeerAccess reports GPUs whose driver refuses peer access.
func (c *Case) noPeerAccess() bool {
	g, _ := hardware.GPUByName(c.gpu())
	return g.Peers == cluster.No
}

// settings are NCCL's that change a prediction.
func (c *Case) settings() map[string]string {
	env := map[string]string{}
	for _, name := range []string{
		"NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_NCHANNELS", "NCCL_MIN_NCHANNELS", "NCCL_P2P_DISABLE", "NCCL_NVLS_ENABLE",
	} {
		if e := c.Env(name); e != nil {
			env[name] = e.Value
		}
	}
	return env
}
