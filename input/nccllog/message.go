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
}

// shapes are tried in order, then deviceLines, then those of known.csv; the first that matches and reads the message
// wins. Behind each are the releases.
var shapes = []shape{
	{"Channel ", "", parseChannel},             // all
	{"", ": opCount ", parseCall},              // all; no other shape holds this
	{"Trees [", "->", parseTrees},              // all
	{"Ring ", " via ", parseConnection},        // 2.4-2.5
	{"", "comm 0x", parseComm},                 // all
	{"Init timings", " rank ", parseInitTimes}, // 2.22+
	{"", " to ", parseSetting},                 // all, and aws-ofi-nccl
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
	re := lazyre.New(k.Pattern)
	parse := func(r *Record) any {
		if k.Pattern == "" || re.MatchString(r.Text) {
			return k.Says
		}
		return nil
	}
	for _, begin := range append(k.Begins, "")[:max(len(k.Begins), 1)] {
		list = append(list, shape{begin, k.Holds, parse})
	}
	return list
}

// shapesOf are the shapes that a message may have by its first byte.
var shapesOf = sync.OnceValue(func() *[256][]shape {
	all := append(slices.Concat(shapes, deviceLines), shape{"NET/", "", parseNet})
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

// parse reads what a record says; nil: not understood.
func parse(r *Record) any {
	if r.Text == "" {
		return nil
	}
	for _, u := range shapesOf()[r.Text[0]] {
		if strings.HasPrefix(r.Text, u.prefix) && strings.Contains(r.Text, u.within) {
			if m := u.parse(r); m != nil {
				return m
			}
		}
	}
	return nil
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
