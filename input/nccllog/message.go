package nccllog

import (
	_ "embed" // for the lines
	"slices"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
)

// What a record says is a *Ring, *Connection, Call, *CommLine, *InitTimes, *Devices, Trees or
// *Setting, or of a type that only this package needs. Texts in it are parts of the line: who
// keeps one copies it.
type (
	// Trees are the places of a rank in the trees of its channels.
	Trees []TreeNode
	// Setting is "NCCL_IB_HCA set by environment to mlx5".
	Setting struct{ Name, Value string }
	// Call is a line "AllReduce: opCount 0 … count 16 datatype 7 …".
	Call struct{}

	note string // what a line of known.csv tells; "" is nothing that we use
)

// The notes.
const (
	isAMD     note = "amd"   // the library is RCCL
	settingUp note = "setup" // nothing but that its rank is setting up
	planning  note = "plan"  // and that it plans: graphs, a tuning table
)

// shape is what a message looks like. It begins with prefix and holds within; parse
// returns nil when it turns out to be something else or cut.
type shape struct {
	prefix, within string
	parse          func(r *Record) any
	says           any // the same of all messages that it reads; nil: it depends on them
}

// shapes are tried in order, then those of shapesOf, which see nothing but the text; the first that matches and reads
// the message wins. Behind each are the releases.
var shapes = []shape{
	{prefix: "Channel ", parse: parseChannel},                         // all
	{within: ": opCount ", parse: parseCall},                          // all; no other shape holds this
	{prefix: "Trees [", within: "->", parse: parseTrees},              // all
	{prefix: "Ring ", within: " via ", parse: parseConnection},        // 2.4-2.5
	{within: "comm 0x", parse: parseComm},                             // all
	{prefix: "Init timings", within: " rank ", parse: parseInitTimes}, // 2.22+
}

//go:embed known.csv
var knownTable string

// known are the lines of known.csv.
type known struct {
	Line     string   `csv:"line"`
	Begins   []string `csv:"begins,optional"`
	Holds    string   `csv:"holds,optional"`
	Pattern  string   `csv:"pattern,optional"`
	Says     note     `csv:"says,optional"`
	Releases string   `csv:"releases"`
}

// shapes are those of a row, one for each beginning.
func (k *known) shapes() (list []shape) {
	re := lazyre.New(k.Pattern) // all digits are alike to it
	parse := func(r *Record) any {
		if k.Pattern == "" || re.MatchString(r.Text) {
			return k.Says
		}
		return nil
	}
	for _, begin := range append(k.Begins, "")[:max(len(k.Begins), 1)] {
		list = append(list, shape{begin, k.Holds, parse, k.Says})
	}
	return list
}

// shapesOf are the shapes behind the first ones that a message may have by its first byte.
var shapesOf = sync.OnceValue(func() *[256][]shape {
	all := append([]shape{{within: " to ", parse: parseSetting}}, deviceLines...) // all, and aws-ofi-nccl
	all = append(all, shape{prefix: "NET/", parse: parseNet})
	for _, k := range csvtable.Must[known]("known.csv", knownTable) {
		all = append(all, k.shapes()...)
	}
	of := new([256][]shape)
	for _, u := range all {
		for b := range of {
			if u.prefix == "" || int(u.prefix[0]) == b {
				of[b] = append(of[b], u)
			}
		}
	}
	return of
})

// read is what a record of the shape says; nil: it is of none.
func (u *shape) read(r *Record) any {
	if !strings.HasPrefix(r.Text, u.prefix) || !strings.Contains(r.Text, u.within) {
		return nil
	}
	return u.parse(r)
}

// parse reads what a record says; nil: not understood.
func (p *Parser) parse(r *Record) any {
	if r.Text == "" {
		return nil
	}
	for i := range shapes {
		if m := shapes[i].read(r); m != nil {
			return m
		}
	}
	u := p.forms.Of(r.Text, func(string) *shape {
		list := shapesOf()[r.Text[0]]
		for i := range list {
			if list[i].read(r) != nil {
				return &list[i]
			}
		}
		return new(shape)
	})
	if u.parse == nil || u.says != nil {
		return u.says
	}
	p.texts.Exact = true
	return p.texts.Of(r.Text, func(text string) any { return u.parse(&Record{Text: strings.Clone(text)}) })
}

// collectives are the operations that NCCL's lines name.
var collectives = strings.Fields("Broadcast Reduce AllGather ReduceScatter AllReduce AlltoAll AllToAll SendRecv Send " +
	"Recv Gather Scatter")

// parseCall reads "AllReduce: opCount 0 sendbuff … count 16 datatype 7 op 0 root 0 comm 0x… [nranks=32] stream
// 0x…". Half of a long log is calls: what stands before the count is skipped, not split.
func parseCall(r *Record) any {
	name, rest, _ := strings.Cut(r.Text, ": opCount ")
	_, count, _ := strings.Cut(rest, " count ")
	count, _, _ = strings.Cut(count, " ")
	if !slices.Contains(collectives, name) || !isDigits(count) {
		return nil
	}
	return Call{}
}

var setting = lazyre.New(`(?:^| )([^a-z ]*_[^a-z ]*) (?:set by environment|set|environment variable) to ([^ ]*)`)

// parseSetting reads "NCCL_IB_HCA set by environment to mlx5".
func parseSetting(r *Record) any {
	if strings.IndexByte(r.Text, '_') < 0 { // most lines with this word
		return nil
	}
	m := setting.FindStringSubmatch(r.Text)
	if m == nil || len(m[1]) > 80 {
		return nil
	}
	return &Setting{m[1], m[2]}
}
