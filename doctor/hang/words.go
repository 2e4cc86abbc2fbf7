package hang

import (
	"cmp"
	_ "embed" // for the kinds
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/internal/csvtable"
)

//go:embed kinds.csv
var kindTable string

type kindRow struct {
	Kind  Kind     `csv:"kind"`
	Alone []string `csv:"alone,optional"`
	Title string   `csv:"title"`
	Next  string   `csv:"next,optional"`
	Then  string   `csv:"then,optional"`
}

// alone is how often a claim of a source alone is right; 0 where the source says no such thing.
func (k kindRow) alone(source string) (sure float64) {
	for _, a := range k.Alone {
		if v, ok := strings.CutPrefix(a, source+"="); ok {
			sure, _ = strconv.ParseFloat(v, 64)
		}
	}
	return sure
}

var kindRows = sync.OnceValue(func() map[Kind]kindRow {
	by := map[Kind]kindRow{}
	for _, k := range csvtable.Must[kindRow]("kinds.csv", kindTable) {
		by[k.Kind] = k
	}
	return by
})

// title is the verdict in one line.
func (v *Verdict) title() string {
	var ranks []int
	for _, r := range v.Ranks {
		ranks = append(ranks, r.Rank)
	}
	who := "a rank"
	switch {
	case len(ranks) > 0:
		who = rankList(ranks)
	case len(v.Nodes) > 0:
		who = strings.Join(v.Nodes, ", ")
	}
	if v.Kind == Late && v.State == Slow {
		return who + " slows every step"
	}
	return strings.Replace(kindRows()[v.Kind].Title, "{who}", who, 1)
}

// Title is the verdict in one line, for people.
func (v *Verdict) Title() string {
	switch v.State {
	case Healthy:
		return "no hang found"
	case Unknown:
		if len(v.Waiting) > 0 {
			return "ranks wait, and for whom is not known"
		}
		return "nothing to judge by"
	}
	return string(v.State) + ": " + v.title()
}

// advise says what to do next, with the commands to do it.
func (x *judge) advise(v *Verdict) {
	v.Text = sentence(v.Text)
	host, pid, rank := "", "PID", "N"
	if len(v.Nodes) > 0 {
		host = v.Nodes[0]
	}
	here := false
	if len(v.Ranks) > 0 {
		first := &v.Ranks[0]
		host, rank, here = first.Host, strconv.Itoa(first.Rank), x.processOf(first.Rank) != nil
		if first.PID > 0 {
			pid = strconv.Itoa(first.PID)
		}
	}
	on := ""
	if ip, err := netip.ParseAddr(host); host != "" && !here && (err != nil || !ip.IsLoopback()) {
		on = "ssh " + host + " "
	}
	drain := fmt.Sprintf("If the node is to blame, drain it: scontrol update nodename=%s state=drain reason=%q, or "+
		"kubectl cordon %[1]s", cmp.Or(host, "NODE"), string(v.Kind))
	if v.doubt {
		drain = "Drain no node before its own counters or its kernel's log show an error."
	}
	fill := strings.NewReplacer("{on}", on, "{pid}", pid, "{rank}", rank, "{drain}", drain)
	row := kindRows()[v.Kind]
	next := []string{row.Next, row.Then}
	switch {
	case v.State == Unknown:
		next = []string{
			"Ask the job: busbar hang --ras HOST, or read its dumps: busbar hang DIR (TORCH_FR_DUMP_TEMP_FILE, default " +
				"/tmp/nccl_trace_rank_N).",
			"Give the logs of all ranks, not of one: busbar hang LOGS. For what one log says by itself: busbar doctor LOG.",
		}
	case v.Kind == Late && v.Stack != "":
		next[0] = "The rank is in " + v.Stack +
			": fix that, or raise the process group's timeout if it is meant to take long."
	case v.Kind == Late && v.State == Slow:
		next = append(next, "Compare the rank's clocks, temperature and CPU with its neighbours: {on}nvidia-smi -q -d "+
			"CLOCK,PERFORMANCE,TEMPERATURE")
	case v.State == Hung && (v.Kind == Killed || v.Kind == Stopped || v.Kind == Kernel):
		next = append(next, "{drain}")
	}
	for _, text := range next {
		if text != "" {
			v.Next = append(v.Next, fill.Replace(text))
		}
	}
	if v.Next == nil {
		v.Next = []string{}
	}
}

// sentence gives a text a capital and a full stop.
func sentence(s string) string {
	if s == "" {
		return s
	}
	if !strings.HasSuffix(s, ".") {
		s += "."
	}
	return strings.ToUpper(s[:1]) + s[1:]
}
