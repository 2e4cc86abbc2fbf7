package main

import (
	"fmt"
	"maps"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/input/nccltests"
	"busbar.dev/result"
)

// tableRecords are the rows of nccl-tests' tables as results. A row has one time, the mean of
// its runs; those without one are left out and counted.
func tableRecords(name string, res *nccltests.Result) (list []*result.Record, untimed int, err error) {
	untimed = res.Untimed
	for i := range res.Tables {
		t := &res.Tables[i]
		if len(t.Rows) == 0 {
			continue
		}
		like, err := tableRecord(t)
		if err != nil {
			return nil, 0, fmt.Errorf("%s:%d: %w", name, t.Line, err)
		}
		for k := range t.Rows {
			r := &t.Rows[k]
			for form, h := range []*nccltests.Half{r.OutOfPlace, r.InPlace} {
				if h == nil {
					continue
				}
				if h.Time <= 0 {
					untimed++
					continue
				}
				x := *like
				x.Size, x.Dtype, x.Redop, x.InPlace = r.Size, r.Type, r.Redop, form == 1
				if x.Redop == "none" {
					x.Redop = ""
				}
				x.Root = max(r.Root, 0)
				x.Time.Mean = float64(h.Time) / 1e6
				if h.Wrong >= 0 && !t.Delta {
					wrong := int64(h.Wrong)
					x.Wrong = &wrong
				}
				if err := x.Check(); err != nil {
					return nil, 0, fmt.Errorf("%s:%d: %w", name, r.Line, err)
				}
				list = append(list, &x)
			}
		}
	}
	return list, untimed, nil
}

// tableRecord is what all rows of a table have in common.
func tableRecord(t *nccltests.Table) (*result.Record, error) {
	x := &result.Record{Format: result.Format, Source: result.Measured, Transport: result.NCCL, Algo: "auto", Ranks: max(t.NRanks(), 1), Library: libraryVersion(t.Library), Tool: "nccl-tests"}
	if t.Version != "" {
		x.Tool += " " + t.Version
	}
	var err error
	if x.Op, err = coll.ParseKind(t.Op); err != nil {
		return nil, fmt.Errorf("nothing says which collective this table is of: %w", err)
	}
	per := map[string]int{}
	var hosts []string
	for _, r := range t.Ranks {
		if per[r.Host]++; per[r.Host] == 1 {
			hosts = append(hosts, r.Host)
		}
		x.Machine = &result.Machine{GPU: r.Model}
	}
	if len(hosts) > 0 {
		x.Nodes, x.PerNode = evenly(per, x.Ranks)
		x.Hosts = cluster.FormatHosts(hosts)
		// Our own bench prints this table too: such ranks are CPUs.
		if x.Machine.GPU == "CPU" {
			x.Transport, x.Tool, x.Machine = "auto", "busbar bench, as a table", nil
		}
	}
	return x, nil
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
