package nccltests

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/input/internal/num"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// addRow files a row: with the rows of its type, reduction and root.
func (t *Table) addRow(p result.Point, dtype, redop string, root int) {
	for i, s := range t.Sweeps {
		if s.Dtype == dtype && s.Redop == redop && t.roots[i] == root {
			s.Points = append(s.Points, p)
			return
		}
	}
	t.Sweeps = append(t.Sweeps, &result.Sweep{Dtype: dtype, Redop: redop, Root: max(root, 0), Points: []result.Point{p}})
	t.roots = append(t.roots, root)
}

// describe fills in what the sweeps of a table have in common.
func (t *Table) describe(file string) {
	like := result.Sweep{Source: result.Measured, Transport: result.NCCL, Tool: Format, Library: release(t.Library)}
	if t.Version != "" {
		like.Tool += " " + t.Version
	}
	switch serial := max(t.GPUs, t.serial); {
	case t.form != nil && !t.form.own:
		like.Tool = "torch.distributed"
	case serial > 1:
		like.Tool += fmt.Sprintf(" -g %d", serial)
	}
	hosts, per := t.perHost()
	ranks := max(t.NRanks(), 1)
	if like.Nodes, like.PerNode = t.layout.nodes, t.layout.per; t.gpu != "" {
		like.Machine = &result.Machine{GPU: t.gpu}
	}
	if len(hosts) > 0 {
		like.Machine = &result.Machine{GPU: t.Ranks[len(t.Ranks)-1].Model}
		like.Nodes, like.PerNode = result.Evenly(per, ranks)
		like.Hosts = cluster.FormatHosts(hosts)
		// busbar bench prints this table too: such ranks are CPUs.
		if like.Machine.GPU == "CPU" {
			like.Transport, like.Tool, like.Machine = "auto", "busbar bench, as a table", nil
		}
	}
	for _, s := range t.Sweeps {
		s.Describe(&like)
		s.Op, s.Ranks, s.File, s.Line = t.Op, ranks, file, t.Line
		if s.OpFrom, s.LayoutFrom = "its header", "its ranks"; t.OpFrom == "columns" {
			s.OpFrom = "its columns"
		}
		for i := range s.Points {
			s.Points[i].Algo = cmp.Or(t.algo, "auto")
		}
	}
}

// Layout is how many nodes with how many GPUs each the table lists, or the text says otherwise; false where it lists no
// ranks, or not all.
func (t *Table) Layout() (nodes, gpus int, ok bool) {
	if len(t.Ranks) == 0 && t.layout.ranks() > 1 {
		return t.layout.nodes, t.layout.per, true
	}
	hosts, per := t.perHost()
	for _, n := range per {
		gpus = max(gpus, n)
	}
	return len(hosts), gpus, len(hosts) > 0 && gpus*len(hosts) == t.NRanks()
}

// perHost lists the hosts of the ranks in their order, and how many each has.
func (t *Table) perHost() (hosts []string, per map[string]int) {
	per = map[string]int{}
	for i := range t.Ranks {
		host := t.Ranks[i].Host
		if per[host]++; per[host] == 1 {
			hosts = append(hosts, host)
		}
	}
	return hosts, per
}

// Devices are the numbers of the GPUs of every node that took part, nil where they are the first, are not the same on
// every host, or each process sees one alone: of GPUs that are hidden from a process (CUDA_VISIBLE_DEVICES) nothing is
// known.
func (t *Table) Devices() []int {
	by := map[string][]int{}
	for i := range t.Ranks {
		by[t.Ranks[i].Host] = append(by[t.Ranks[i].Host], t.Ranks[i].Device)
	}
	var one []int
	for _, list := range by {
		sorted := slices.Sorted(slices.Values(list))
		if one == nil {
			one = list
		}
		if !slices.Equal(one, list) || len(slices.Compact(sorted)) < len(list) || sorted[0] < 0 ||
			sorted[len(list)-1] == len(list)-1 {
			return nil
		}
	}
	return one
}

// Name says which collective a table is of, where somebody knows better than the text.
func (t *Table) Name(op coll.Kind) {
	t.Op = op
	for _, s := range t.Sweeps {
		s.Op = op
	}
}

// Best is the highest busbw that the rows print, and the algbw of that row.
func (t *Table) Best() (bus, alg unit.Rate) {
	for _, s := range t.Sweeps {
		for i := range s.Points {
			if o := s.Points[i].Out; o != nil && o.PrintedBus > bus {
				bus, alg = o.PrintedBus, o.PrintedAlg
			}
		}
	}
	return bus, alg
}

// Sweeps are those of all tables that have times. The error names the first line that no sweep can have.
func (o *Output) Sweeps() (result.Sweeps, error) {
	var list result.Sweeps
	for i := range o.Tables {
		t := &o.Tables[i]
		for _, s := range t.Sweeps {
			if s.Op == coll.None {
				_, err := coll.ParseKind("")
				return nil, fmt.Errorf("%s: nothing says which collective this table is of: %w", place(s.File, s.Line), err)
			}
			if err := s.Check(); err != nil {
				return nil, fmt.Errorf("%s: %w", place(s.File, s.Line), err)
			}
			if len(s.Rows()) > 0 {
				list = append(list, s)
			}
		}
	}
	return list, nil
}

// place is a line of a file; JSON has no lines.
func place(file string, line int) string {
	if line == 0 {
		return file
	}
	return fmt.Sprintf("%s:%d", file, line)
}

// largest is the point of the greatest size that has a time out of place, the last of equals, with the root and
// reduction of its row; nil where there is none.
func (t *Table) largest() (p *result.Point, redop string, root int) {
	for i, s := range t.Sweeps {
		for k := range s.Points {
			if q := &s.Points[k]; q.Out != nil && (p == nil || q.Size >= p.Size) {
				p, redop, root = q, s.Redop, t.roots[i]
			}
		}
	}
	return p, redop, root
}

// Release turns NCCL's version code 22907 into 2.29.7; "" where it is none.
func release(code string) string {
	if strings.Contains(code, ".") { // as NCCL's log has it
		return code
	}
	n := num.Or(code, 20900, math.MaxInt32, 0)
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%d.%d", n/10000, n/100%100, n%100)
}

// timing is a time in µs; nil for one that is not above 0.
func timing(micros float64, alg, bus unit.Rate, wrong *int64) *result.Timing {
	if micros <= 0 {
		return nil
	}
	t := result.Time(micros)
	t.PrintedAlg, t.PrintedBus, t.Wrong = alg, bus, wrong
	return t
}
