package predict

import (
	_ "embed"
	"fmt"
	"math"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// publishedRun is a row of published.csv: an all-reduce of a library whose rules nobody published, by somebody who
// published how fast it was. What lies between two sizes is drawn along the logarithm of the size, larger ones go at
// the rate of the largest, and smaller ones are not known.
type publishedRun struct {
	Run   int        `csv:"run"`
	GPU   string     `csv:"gpu"` // a part of its name
	Nodes int        `csv:"nodes"`
	Size  unit.Bytes `csv:"size"`
	BusBW float64    `csv:"busbw"` // GB/s
	Who   string     `csv:"source"`
}

//go:embed published.csv
var publishedTable string

var publishedRuns = sync.OnceValue(func() []publishedRun {
	return csvtable.Must[publishedRun]("predict/published.csv", publishedTable)
})

// publishedMargin is the error bar of what was published by one or two hosts at these sizes, and publishedBeyond that
// of larger ones: wider than any class that was measured here, because nothing was.
const (
	publishedMargin = 1.5
	publishedBeyond = 2
)

// OnlyPublished tells of GPUs whose library has no rules here, but runs that somebody published.
func OnlyPublished(c *cluster.Cluster, l nccl.Layout) bool { return len(runsOf(c, l, false)) > 0 }

// runsOf are the published runs on GPUs like those of a layout, on so many nodes as it has where that is asked for.
func runsOf(c *cluster.Cluster, l nccl.Layout, sameNodes bool) []publishedRun {
	if len(l) == 0 {
		return nil
	}
	model := ""
	for _, d := range c.TypeOf(l[0].Host).Devices {
		if d.Kind == cluster.GPU {
			model = strings.ReplaceAll(strings.ToLower(d.Model.Value), " ", "")
		}
	}
	var list []publishedRun
	for _, r := range publishedRuns() {
		if strings.Contains(model, r.GPU) && (!sameNodes || 8*r.Nodes == len(l) && r.Nodes == hostsOf(l)) {
			list = append(list, r)
		}
	}
	return list
}

func hostsOf(l nccl.Layout) int {
	hosts := map[int]bool{}
	for _, p := range l {
		hosts[p.Host] = true
	}
	return len(hosts)
}

// AskPublished answers a query from published runs alone. source says whose they are. Sizes below the smallest of them
// are skipped and named.
func AskPublished(c *cluster.Cluster, l nccl.Layout, side Side, q Query) (a *Answer, source string, err error) {
	runs := runsOf(c, l, true)
	switch {
	case q.Kind != coll.AllReduce:
		return nil, "", fmt.Errorf("%s on Gaudi: of HCCL only runs of all_reduce are published; missing are its "+
			"algorithms, how it chooses by size, and a sweep of %s", q.Kind, q.Kind)
	case len(runs) == 0:
		return nil, "", fmt.Errorf("all_reduce of %d ranks on Gaudi: of HCCL only runs on one whole node of 8 cards (Gaudi "+
			"2 and 3) and on two (Gaudi 2) are published; missing is a sweep on other layouts (-l 1x8)", len(l))
	}
	var who []string
	for _, r := range runs {
		who = append(who, r.Who)
	}
	a = &Answer{Side: side}
	for _, size := range q.Sizes {
		if size < runs[0].Size {
			continue
		}
		op := coll.Op{Kind: q.Kind, Type: q.Type, Bytes: size}
		rate, margin := rateAt(runs, size)
		run := &result.Run{
			Op: op, Ranks: len(l), Algo: "published", Margin: margin,
			Limit: result.Limit{Kind: result.ByNothing, Text: "not known: the time is a published run's"},
		}
		run.Time = unit.Time(math.Round(float64(size) * op.Kind.BusFactor(len(l)) / (rate * 1e9) * float64(unit.Second)))
		run.Parts.Moving = run.Time
		row := NewRow(run, size, "published", Setting{})
		row.Chosen, row.Grade = true, Guess
		row.Layout = side.Layout
		a.Rows = append(a.Rows, row)
	}
	if skipped := len(q.Sizes) - len(a.Rows); skipped > 0 {
		a.Skipped = append(a.Skipped, Skip{
			"published", fmt.Sprintf("%s below %v: the smallest all_reduce of HCCL whose time is published; missing is what a "+
				"message takes there", words.Plural(skipped, "size"), runs[0].Size),
		})
	}
	if len(a.Rows) == 0 {
		return nil, "", fmt.Errorf("all_reduce on Gaudi: %s", a.Skipped[0].Reason)
	}
	return a, strings.Join(who, "; "), nil
}

// rateAt is the bus bandwidth at a size, in GB/s, and its error bar.
func rateAt(runs []publishedRun, size unit.Bytes) (rate, margin float64) {
	last := runs[len(runs)-1]
	if size > last.Size {
		return last.BusBW, publishedBeyond
	}
	for i := 1; i < len(runs); i++ {
		if a, b := runs[i-1], runs[i]; size <= b.Size {
			share := math.Log(float64(size)/float64(a.Size)) / math.Log(float64(b.Size)/float64(a.Size))
			return a.BusBW + share*(b.BusBW-a.BusBW), publishedMargin
		}
	}
	return last.BusBW, publishedMargin
}
