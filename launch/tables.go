package launch

import (
	"bytes"
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/launch/tuner"
	"busbar.dev/predict"
	"busbar.dev/step"
)

// mostTabled is the ranks of a group up to which its choices are weighed one by one.
const mostTabled = 1 << 10

// Tables are the choices of algorithms for each of the job's groups, for tuner plugins of NCCL:
// busbar's own with its source, and NVIDIA's example. There are none where NCCL's own choices
// are the best at all sizes.
func (p *Plan) Tables(f *step.Fabric) ([]File, []Left, error) {
	type group struct {
		q    *predict.Predictor
		rows []tuner.Row
	}
	var rows []tuner.Row
	var asked []group
	seen := map[[2]int]bool{}
	for _, s := range f.Groups() {
		if s.Group == step.Next || s.Group == step.ToHost || s.Size < 2 || s.Size > mostTabled {
			continue
		}
		q, err := f.Predictor(s.Group)
		if err != nil || q == nil {
			return nil, nil, err
		}
		// A tuner knows a communicator by its ranks and nodes alone; the first of a kind counts.
		key := [2]int{len(q.Layout), q.Plan.NNodes}
		if seen[key] {
			continue
		}
		seen[key] = true
		more, err := tuner.Rows(q, coll.BFloat16)
		if err != nil {
			return nil, nil, fmt.Errorf("%s groups: %w", s.Group, err)
		}
		rows, asked = append(rows, more...), append(asked, group{q, more})
	}
	const tab, csv, source = "tuner.tab", "nccl-table.csv", "busbar_tuner.c"
	if len(rows) == 0 {
		reason := "NCCL's own choices are predicted to be the best for all groups of the job"
		return nil, []Left{{tab, reason}, {csv, reason}}, nil
	}
	// the plugin reads 511 bytes a line
	about := fmt.Sprintf("Choices for NCCL %s, for busbar's tuner plugin (%s says how to build it); predicted for the "+
		"groups of %s.\n# Made by: %.400s", line(p.NCCL), source, line(p.Job.Model), line(p.Made))
	var b, c bytes.Buffer
	if err := tuner.Write(&b, about, rows); err != nil {
		return nil, nil, err
	}
	fmt.Fprintf(&c, "# The same for NVIDIA's example tuner plugin (NCCL_TUNER_CONFIG_FILE). Made by busbar plan; %s "+
		"says more.\n", tab)
	fmt.Fprintf(&c, "# That plugin runs on one channel what no line matches: communicators of other sizes are slow with "+
		"it.\n# Build it from NCCL 2.30.3 or later: that of 2.27.5 to 2.29.7 takes the table of costs for pointers and "+
		"ends the program at the first match.\n# busbar's own leaves the others to NCCL: prefer %s.\n", tab)
	for _, g := range asked {
		if err := tuner.CSV(&c, g.q, coll.BFloat16, g.rows); err != nil {
			return nil, nil, err
		}
	}
	return []File{
		{Name: tab, Text: b.String()}, {Name: csv, Text: c.String()}, {Name: source, Text: tuner.Source()},
	}, nil, nil
}
