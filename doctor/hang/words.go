package hang

import (
	"cmp"
	_ "embed" // for the kinds
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/input/joblog"
	"busbar.dev/internal/csvtable"
)

//go:embed kinds.csv
var kindTable string

type kindRow struct {
	Kind  Kind   `csv:"kind"`
	Title string `csv:"title"`
	Next  string `csv:"next,optional"`
	Then  string `csv:"then,optional"`
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
	host, pid := "", "PID"
	if len(v.Nodes) > 0 {
		host = v.Nodes[0]
	}
	if len(v.Ranks) > 0 {
		if host = v.Ranks[0].Host; v.Ranks[0].PID > 0 {
			pid = strconv.Itoa(v.Ranks[0].PID)
		}
	}
	on := ""
	here := len(v.Ranks) > 0 && x.processOf(v.Ranks[0].Rank) != nil
	if ip, err := netip.ParseAddr(host); host != "" && !here && (err != nil || !ip.IsLoopback()) {
		on = "ssh " + host + " "
	}
	look := on + "py-spy dump --pid " + pid
	if v.Kind == DataLoading {
		look = strings.Replace(look, "dump", "dump --subprocesses", 1)
	}
	if host == "" && !here {
		look += " on the rank's node"
	}
	reason := map[Kind]string{GPUFault: "GPU error"}
	drain := fmt.Sprintf("If the node is to blame, drain it: scontrol update nodename=%s state=drain reason=%q, or "+
		"kubectl cordon %[1]s", cmp.Or(host, "NODE"), cmp.Or(reason[v.Kind], string(v.Kind)))
	if v.doubt {
		drain = "Drain no node before its own counters or its kernel's log show an error."
	}
	switch v.Kind {
	case Late:
		x.adviseLate(v, on, look)
	case NoReport:
		x.adviseNoReport(v, on, pid)
	}
	fill := strings.NewReplacer("{on}", on, "{pid}", pid, "{look}", look, "{drain}", drain)
	for _, text := range []string{kindRows()[v.Kind].Next, kindRows()[v.Kind].Then} {
		if text != "" {
			v.Next = append(v.Next, fill.Replace(text))
		}
	}
	if v.State == Unknown {
		v.Next = append(v.Next, "Ask the job: busbar hang --ras HOST, or read its dumps: busbar hang DIR "+
			"(TORCH_FR_DUMP_TEMP_FILE, default /tmp/nccl_trace_rank_N).",
			"Give the logs of all ranks, not of one: busbar hang LOGS. For what one log says by itself: busbar doctor LOG.")
	}
	if v.State == Hung && slices.Contains([]Kind{Killed, Stopped, Kernel}, v.Kind) {
		v.Next = append(v.Next, drain)
	}
	if v.Next == nil {
		v.Next = []string{}
	}
}

// adviseLate says how to see what a late rank does, or what to do about what is seen.
func (x *judge) adviseLate(v *Verdict, on, look string) {
	text := "See what the rank does: " + look
	switch {
	case v.Stack != "":
		text = "The rank is in " + v.Stack +
			": fix that, or raise the process group's timeout if it is meant to take long."
	case len(x.log.by[joblog.Down])+len(x.log.by[joblog.Exit]) > 0:
		text = "The job has ended: read the rank's own output up to the timeout. Next time, while it hangs: " + look
	}
	v.Next = append(v.Next, text)
	if v.State == Slow {
		v.Next = append(v.Next, "Compare the rank's clocks, temperature and CPU with its neighbours: "+
			on+"nvidia-smi -q -d CLOCK,PERFORMANCE,TEMPERATURE")
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
