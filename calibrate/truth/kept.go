package truth

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"busbar.dev/predict"
	"busbar.dev/result"
)

// Kept makes sweeps that can be predicted of results that busbar kept: those of one collective on
// one layout with one setting, in one session, belong together, and only out of place. layout is
// that of rows that have none (2x8). What cannot be used is left, with the reason.
func Kept(list result.Sweeps, layout string) (result.Sweeps, []Left, error) {
	var sweeps result.Sweeps
	at := map[string]*result.Sweep{}
	why := map[string]int{}
	name := ""
	for _, r := range list.Rows() {
		name = filepath.Base(r.File)
		if r.InPlace {
			continue // the published figures, and so the model's, are out of place
		}
		if reason := unusable(r); reason != "" {
			why[reason]++
			continue
		}
		key := fmt.Sprint(r.Session, r.Op, r.Dtype, r.Ranks, r.Nodes, r.Algo, r.Proto, r.Channels, r.Library, r.Cluster,
			r.Env)
		s := at[key]
		if s == nil {
			one := *r.Sweep
			s = &one
			s.ID, s.Line, s.Points = fmt.Sprintf("here-%s:%d", name, r.Point.Line), r.Point.Line, nil
			if err := placed(s, layout); err != nil {
				return nil, nil, err
			}
			at[key] = s
			sweeps = append(sweeps, s)
		}
		p := *r.Point
		p.In = nil
		s.Points = append(s.Points, p)
	}
	var left []Left
	for _, reason := range slices.Sorted(maps.Keys(why)) {
		left = append(left, Left{ID: name, Reason: reason, Points: why[reason]})
	}
	return sweeps, left, nil
}

// unusable says why a row says nothing about NCCL on a cluster of GPUs, "" where it does.
func unusable(r result.Row) string {
	switch {
	case r.Source != result.Measured:
		return "a prediction; only measurements can be compared with predictions"
	case !r.OnGPUs():
		return "measured on CPUs by busbar's own engine; the model is of NCCL on GPUs, whose launches, copies and " +
			"protocols a CPU does not have: take results of `busbar bench gpu` or nccl-tests"
	case r.Wrong != nil && *r.Wrong > 0:
		return "wrong results; what did not do its work says nothing about how long that takes"
	case r.Compress != "" && r.Compress != "none":
		return "compressed on the wire; NCCL does not do that"
	case r.Size <= 0 || r.Time.Mean <= 0:
		return "no size or no time"
	}
	return ""
}

// placed gives a sweep without a layout the one that somebody says.
func placed(s *result.Sweep, layout string) error {
	if s.Nodes > 0 {
		return nil
	}
	if layout == "" {
		return fmt.Errorf("%s:%d: the record has no layout; say which ranks took part with -l, e.g. -l 2x8", s.File, s.Line)
	}
	nodes, per, err := predict.ParseLayout(layout)
	if err != nil {
		return err
	}
	if nodes*per != s.Ranks {
		return fmt.Errorf("%s:%d: %d ranks, and -l says %dx%d; give the layout that ran", s.File, s.Line, s.Ranks, nodes, per)
	}
	s.Nodes, s.PerNode, s.LayoutFrom = nodes, per, "-l"
	return nil
}
