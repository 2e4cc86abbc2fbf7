package doctor

import (
	"fmt"
	"maps"
	"slices"

	"busbar.dev/cluster"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/hang"
	"busbar.dev/finding"
	"busbar.dev/internal/words"
	"busbar.dev/result"
	"busbar.dev/result/pairs"
	"busbar.dev/unit"
)

// among compares tables of one operation, layout and size with each other, by their largest size.
func among(tables []evidence.Table) (list []finding.Finding) {
	alike := map[string][]result.Row{}
	for i := range tables {
		for _, s := range tables[i].Sweeps {
			var last result.Row
			for _, r := range s.Rows() {
				if r.Middle() > 0 && (last.Sweep == nil || r.Size > last.Size) {
					last = r
				}
			}
			if last.Sweep != nil {
				key := fmt.Sprint(s.Op, s.Dtype, s.Redop, s.Ranks, s.Layout(), s.Transport, s.Library, s.GPU(), last.Algo,
					last.Size)
				alike[key] = append(alike[key], last)
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(alike)) {
		list = append(list, slowest(alike[key])...)
	}
	return list
}

// slowest names the hosts that explain the tables that stand out. A table is as slow as its slowest host, so those of
// the other tables are in order; between hosts that all are, it is the way. The same hosts in other tables are in order
// too.
func slowest(rows []result.Row) (list []finding.Finding) {
	var speeds []float64
	for _, r := range rows {
		speeds = append(speeds, 1/r.Middle().Seconds())
	}
	low, inOrder := pairs.Compare(speeds), map[string]bool{}
	for i, r := range rows {
		if _, slow := low[i]; !slow {
			for _, h := range append(hostsOf(r), r.Hosts) {
				inOrder[h] = true
			}
		}
	}
	for i, r := range rows {
		f, slow := low[i]
		suspects := slices.DeleteFunc(hostsOf(r), func(h string) bool { return inOrder[h] })
		if len(suspects) == 0 {
			suspects = hostsOf(r)
		}
		f.Where = hostlist(suspects)
		named := func(o finding.Finding) bool { return o.Where == f.Where }
		if !slow || r.Hosts != "" && inOrder[r.Hosts] || slices.ContainsFunc(list, named) {
			continue
		}
		usual := unit.Time(f.Factor * float64(r.Middle()))
		f.ID, f.Confidence = "table-stands-out", likely(1/f.Factor, slack)
		f.Title = fmt.Sprintf("%s is slow beside the others: %s of %v takes %v where %v is usual of %s", f.Where, r.Op,
			r.Size,
			r.Middle(), usual, words.Plural(len(rows), "table"))
		f.Cause = "The tables are of one operation, layout and size, so what all share (software, settings, fabric) is not " +
			"the cause: links that are down, clocks that are held down, or another job are."
		f.Fix = "nvidia-smi nvlink -s, nvidia-smi -q -d PERFORMANCE and ibstat there; run it again without " + f.Where + "."
		f.Evidence = []finding.Quote{{File: r.File, Line: r.Point.Line, Text: f.Title}}
		list = append(list, f)
	}
	return list
}

// again says that runs stand before the one that is judged.
func again(job *hang.Case) []finding.Finding {
	if job == nil || job.Runs == nil {
		return nil
	}
	return []finding.Finding{{
		ID: "several-runs", Severity: finding.Warn, Confidence: 1, Evidence: first(job.Runs, 20), Where: job.Runs[0].File,
		Title: words.Plural(len(job.Runs), "run") + " ended in one log; how ranks ended is judged of the last",
		Cause: "Each may have had a fault of its own: a line of each tells how it ended, the newest first.",
		Fix:   "one log for each run, in Slurm --output=%x-%j.out",
	}}
}

// hostsOf are the hosts of a table, or its file where it names none.
func hostsOf(r result.Row) []string {
	if hosts, err := cluster.ParseHosts(r.Hosts); err == nil {
		return hosts
	}
	return []string{r.File}
}
