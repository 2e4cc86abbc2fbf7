package slurm

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/words"
)

const formatNodes = "Slurm nodes"

// Limits: the most GPUs (or slices of them) that a node is believed to have,
// the most devices over all kinds of node, and the most lines and fields of one
// node.
const (
	maxGPUs    = 256
	maxDevices = 50_000
	maxFields  = 1000
)

// MatchNodes reports whether the text lists Slurm nodes: NodeName records with
// Gres or a CPU count ("scontrol show node", slurm.conf), or sinfo with states or
// GRES.
func MatchNodes(data []byte) bool {
	for _, fields := range nodes(string(data)) {
		if isNode(fields) {
			return true
		}
	}
	return false
}

// ReadNodesWithin reads hosts with their GPUs and sockets from "scontrol show node",
// from the NodeName lines of slurm.conf or from sinfo with a GRES column.
func ReadNodesWithin(b *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error) {
	text, err := readText(name, r)
	if err != nil {
		return nil, err
	}
	f := &cluster.Fragment{Format: formatNodes, Source: name}
	nr := nodeReader{budget: b, f: f, host: map[string]int{}, types: map[string]int{}}
	for num, fields := range nodes(text) {
		if !isNode(fields) {
			continue
		}
		if err := nr.addNodes(num, fields); err != nil {
			return nil, err
		}
	}
	if len(f.Hosts) == 0 {
		return nil, fmt.Errorf("%s: no node; expected NodeName=… Gres=… (scontrol show node, slurm.conf) or an sinfo "+
			"table with the columns NODELIST and GRES (sinfo -N -o \"%%N %%G\")", name)
	}
	warn.Limit(f)
	return f, nil
}

// nodes yields the fields of every record of a node and of every row of an sinfo table, with their lines.
func nodes(text string) iter.Seq2[int, []field] {
	return func(yield func(int, []field) bool) {
		var rec []field // the record at hand
		var at int      // its line
		var header []string
		for l := range joinedLines(text, func(raw string) bool { return raw != "" || rec != nil || header != nil }) {
			body := strings.TrimLeft(l.text, " \t")
			starts := body != "" && body[0]|' ' == 'n' && nodeStart.MatchString(body)
			// scontrol prints a line of blanks before the reason
			if !starts && rec != nil && (body == "" || len(body) < len(l.text) && strings.Contains(body, "=")) {
				if len(rec) < maxFields {
					more, _ := cutFields(body)
					rec = append(rec, more...)
				}
				continue
			}
			if rec != nil && !yield(at, rec) {
				return
			}
			rec = nil
			if header == nil && bareRow.MatchString(body) {
				header = strings.Fields("PARTITION AVAIL TIMELIMIT NODES STATE NODELIST")
			}
			if starts {
				at, header = l.num, nil
				rec, _ = cutFields(body)
			} else if h := sinfoHeader(body); h != nil {
				header = h
			} else if row := sinfoRow(header, body); row == nil {
				header = nil
			} else if !yield(l.num, row) {
				return
			}
		}
		if rec != nil {
			yield(at, rec)
		}
	}
}

// bareRow is a row of sinfo whose heading is not there.
var bareRow = lazyre.New(`^\S+ +(?:up|down|drain|inact) +(?:infinite|[\d:-]+) +\d+ +[a-z]+\S? +\S+\d\S*$`)

var nodeStart = lazyre.New(`^(?i:NodeName)[ \t]*=`)

// isNode reports whether a record says more of a node than its name.
func isNode(rec []field) bool {
	for _, f := range rec {
		for _, k := range []string{"Gres", "CPUs", "CPUTot", "Sockets", "CoresPerSocket", "State"} {
			if f.is(k) {
				return true
			}
		}
	}
	return false
}

// sinfoHeader recognises the first line of an sinfo table that has a column of GRES or states.
func sinfoHeader(s string) []string {
	if !strings.Contains(s, "NODELIST") && !strings.Contains(s, "HOSTNAMES") {
		return nil
	}
	words := strings.Fields(s)
	if len(words) > 64 || slices.Contains(words, "JOBID") ||
		!slices.Contains(words, "NODELIST") && !slices.Contains(words, "HOSTNAMES") ||
		!slices.Contains(words, "GRES") && !slices.Contains(words, "STATE") {
		return nil
	}
	return words
}

// columns are the fields of a node by the headings of sinfo.
var columns = words.Pairs("NODELIST=NodeName|HOSTNAMES=NodeName|GRES=Gres|SOCKETS=Sockets|STATE=State|REASON=Reason")

// sinfoRow turns a row of an sinfo table into the fields of a node. A reason in the last column may have several words.
func sinfoRow(header []string, s string) []field {
	if header == nil {
		return nil
	}
	cells := strings.Fields(s)
	last := len(header) - 1
	if last >= 0 && len(cells) > len(header) && header[last] == "REASON" {
		cells = append(cells[:last], strings.Join(cells[last:], " "))
	}
	if len(cells) != len(header) {
		return nil
	}
	var row []field
	for i, h := range header {
		if k := columns[h]; k != "" {
			row = append(row, field{k, cells[i]})
		}
	}
	return row
}

// nodeReader collects nodes; equal nodes share a type.
type nodeReader struct {
	budget   *cluster.Budget
	f        *cluster.Fragment
	host     map[string]int
	types    map[string]int
	defaults []field // of a NodeName=DEFAULT line
	devices  int
}

func (nr *nodeReader) addNodes(num int, fields []field) error {
	name := get(fields, "NodeName")
	if strings.EqualFold(name, "DEFAULT") {
		nr.defaults = fields
		return nil
	}
	names, err := hosts(nr.budget, name)
	if errors.Is(err, cluster.ErrTooLarge) || nr.budget.Stopped() != nil {
		return fmt.Errorf("%s:%d: %w", nr.f.Source, num, err)
	}
	if err != nil {
		nr.f.Warnf(num, name, "%v; node skipped", err)
		return nil
	}
	if err := nr.budget.TakeHosts(len(names)); err != nil {
		return fmt.Errorf("%s:%d: %w", nr.f.Source, num, err)
	}
	fields = append(fields[:len(fields):len(fields)], nr.defaults...)
	typ := nr.typeOf(num, name, fields)
	state := get(fields, "State")
	out := outOf(state, get(fields, "Reason"))
	if out == nil && state != "" && !strings.EqualFold(state, "unknown") {
		out = &cluster.Out{} // it gets jobs, whatever an older source says
	}
	for _, n := range names {
		if at, ok := nr.host[n]; ok {
			if nr.f.Hosts[at].Type != typ {
				nr.f.Warnf(num, n, "listed again with other parts; kept the first")
			}
			continue
		}
		nr.host[n] = len(nr.f.Hosts)
		nr.f.Hosts = append(nr.f.Hosts, cluster.Host{Name: n, Type: typ, Out: out})
	}
	return nil
}

// typeOf finds or makes the type of a node.
func (nr *nodeReader) typeOf(num int, where string, fields []field) int {
	gpus := nr.gpus(num, where, get(fields, "Gres"))
	sockets, _ := strconv.Atoi(get(fields, "Sockets"))
	if sockets < 0 || sockets > 64 {
		nr.f.Warnf(num, where, "%d sockets are not believed", sockets)
		sockets = 0
	}
	arch := get(fields, "Arch")
	if len(gpus) == 0 && sockets == 0 {
		return -1
	}
	key := fmt.Sprint(gpus, sockets, arch)
	if at, ok := nr.types[key]; ok {
		return at
	}
	if nr.devices += sockets; nr.devices > maxDevices {
		nr.f.Warnf(num, where, "more than %d devices in nodes that differ; what is in this one was skipped", maxDevices)
		return -1
	}
	t := &cluster.NodeType{}
	for i := range sockets {
		d := cluster.Device{Kind: cluster.Socket, Index: i, Parent: -1}
		if arch != "" {
			d.CPU = &cluster.CPUInfo{Arch: arch}
		}
		t.Add(d)
	}
	for _, g := range gpus {
		t.Name = strings.TrimPrefix(t.Name+"+"+g.String(), "+")
		nr.devices += g.count
		for range g.count {
			d := board.GPU("", t.Count(cluster.GPU))
			d.Model = board.Fact(g.model, "Slurm Gres")
			t.Add(d)
		}
	}
	t.Name = cmp.Or(t.Name, "cpu")
	nr.types[key] = len(nr.f.Types)
	nr.f.Types = append(nr.f.Types, t)
	return nr.types[key]
}

// gres is some GPUs of one kind.
type gres struct {
	model string
	count int
}

func (g gres) String() string {
	if g.model == "" {
		return fmt.Sprintf("gpu:%d", g.count)
	}
	return fmt.Sprintf("%s:%d", g.model, g.count)
}

// brackets hold which of a Gres a node has, or near which sockets.
var brackets = lazyre.New(`\([^)]*\)?`)

// gpus reads a Gres value: gpu:8, gpu:h100:8(S:0-1), gpu:a100:4,nvme:1.
func (nr *nodeReader) gpus(num int, where, s string) []gres {
	var out []gres
	total := 0
	for item := range strings.SplitSeq(brackets.ReplaceAllString(s, ""), ",") {
		parts := strings.Split(item, ":")
		if parts[0] != "gpu" {
			continue
		}
		g := gres{count: 1}
		for _, p := range parts[1:] {
			digits, kilo := strings.CutSuffix(p, "K") // 1024
			if n, err := strconv.ParseInt(digits, 10, 32); err == nil {
				if g.count = int(n); kilo {
					g.count <<= 10
				}
			} else if p != "no_consume" {
				g.model = p
			}
		}
		if g.count <= 0 || total+g.count > maxGPUs {
			nr.f.Warnf(num, where, "Gres %s: %d GPUs in a node are not believed", item, g.count)
			continue
		}
		total += g.count
		out = append(out, g)
	}
	return out
}
