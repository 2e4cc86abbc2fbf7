package doctor

import (
	"cmp"
	"fmt"
	"strconv"
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

// statedLayouts are GPUs on nodes as people write it: "4 GPUs on 2 nodes", "2 nodes with 2 GPUs each", "2 from each of
// 2 servers", "2x2". The groups named all, each and nodes are what they count.
var statedLayouts = lazyre.New(`\b(?:` +
	`(?P<each>\d+) (?:gpus? |cards? )?(?:from|in|on|of|per) (?:each of|each|every|per) (?:of )?(?P<nodes>\d+)` +
	`|(?P<all>\d+) (?:gpus? |cards? |[ah]\d00s? )?(?:on|over|across|in|of|from) (?P<nodes>\d+)(?: (?:` + hostWords +
	`))?` +
	`|(?P<nodes>\d+)[- ](?:` + hostWords +
	`),?(?: with| of| and| x|:)? (?P<each>\d+)[- ]?(?:gpus?)?[- ]?(?:each|per|apiece)` +
	`|(?P<each>\d+) (?:gpus? |cards? )?(?:per|each) (?:` + hostWords + `) (?:on|over|across|from) (?P<nodes>\d+)` +
	`|(?P<nodes>\d+) ?[x×] ?(?P<each>\d+))\b`)

const hostWords = "nodes?|hosts?|machines?|servers?|box(?:es)?"

var lowerWord = lazyre.New(`[a-z]+`)

// statedTime is what a layout takes, or gives where it is a rate.
var statedTime = lazyre.New(`(\d+(?:\.\d+)?) ?(?:[a-z]*(/|gb|tok))?`)

// fewerNodesSlower are two layouts of which that on fewer nodes is told to be the slower: GPUs of a node, both layouts.
func (c *Case) fewerNodesSlower() *clue {
	type layout struct {
		nodes, each int
		text        string
		took        float64
	}
	for line := range strings.Lines(sentences(c.Words)) {
		low := lowerWord.ReplaceAllStringFunc(strings.ToLower(line), func(w string) string {
			if n := numbers[w]; n > 0 {
				return strconv.Itoa(n)
			}
			return w
		})
		var list []layout
		found := statedLayouts.FindAllStringIndex(low, 8)
		for i, m := range found {
			l, rest := layout{text: low[m[0]:m[1]]}, low[m[1]:]
			n := statedLayouts.Groups(l.text)
			l.nodes = max(atoi(n["nodes"]), 1)
			l.each = max(atoi(n["each"]), atoi(n["all"])/l.nodes)
			if i+1 < len(found) {
				rest = low[m[1]:found[i+1][0]]
			}
			if t := statedTime.FindStringSubmatch(rest); t != nil {
				if l.took, _ = strconv.ParseFloat(t[1], 64); t[2] != "" {
					l.took = 1 / max(l.took, 1e-9)
				}
			}
			if l.nodes > 1 && l.each > 0 {
				list = append(list, l)
			}
		}
		if len(list) < 2 {
			continue
		}
		a, b := list[0], list[1]
		switch {
		case a.took > 0 && b.took > 0:
			if a.took < b.took {
				a, b = b, a
			}
		case strings.Contains(low, "faster"): // "four on four are faster than four on two"
			a, b = b, a
		case !strings.Contains(low, "slower") && !strings.Contains(low, "longer"):
			continue
		}
		if a.nodes < b.nodes && a.each > b.each {
			return &clue{
				args:   []string{words.Plural(a.each, "GPU"), a.text, b.text},
				quotes: []finding.Quote{{Text: strings.TrimSpace(line)}},
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
