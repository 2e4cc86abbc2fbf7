package doctor

import (
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
	"busbar.dev/hardware"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
)

// numbers in words.
var numbers = words.Pairs("one=1|single=1|two=2|three=3|four=4|eight=8|sixteen=16")

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
			return cmp.Or(numbers[w], w)
		})
		var list []layout
		found := statedLayouts.FindAllStringIndex(low, 8)
		ends := append([][]int{{0, 0}}, found...)
		ahead := len(found) > 0 && statedTime.MatchString(low[:found[0][0]]) &&
			!statedTime.MatchString(low[found[len(found)-1][1]:])
		for i, m := range found {
			l, rest := layout{text: low[m[0]:m[1]]}, low[m[1]:]
			n := statedLayouts.Groups(l.text)
			l.nodes = max(atoi(n["nodes"]), 1)
			l.each = max(atoi(n["each"]), atoi(n["all"])/l.nodes)
			if i+1 < len(found) {
				rest = low[m[1]:found[i+1][0]]
			}
			if ahead {
				rest = low[ends[i][1]:m[0]]
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
