package predict

import (
	"fmt"

	"busbar.dev/coll"
	"busbar.dev/result"
	"busbar.dev/unit"
)

// Copy is the name of what NCCL does for a communicator of one rank.
const Copy = "copy"

// singleRank is a call with one rank: nothing is exchanged. Out of place, as nccl-tests measures,
// NCCL copies the data inside the GPU's memory, which is read and written; in place it does
// nothing at all.
func (p *Predictor) singleRank(op coll.Op, s Setting, run *result.Run) {
	const text = "one rank exchanges nothing: out of place the data is copied inside the GPU's memory"
	g := p.Cluster.TypeOf(p.Layout[0].Host).Devices[p.Layout[0].GPU].GPU
	m := p.model(p.Figures, op, Setting{Algo: Copy, Proto: s.Proto, Channels: 1}) // no buffers are filled, as a ring's are
	run.Algo, run.Channels = Copy, 1
	run.Parts = result.Parts{Launch: m.Wire.Launch}
	run.Limit = result.Limit{Kind: result.ByLaunch, Where: p.Name(0), Text: text + ", in place nothing is done"}
	if g != nil && g.HBM.Value > 0 {
		run.Parts.Moving = unit.Time(2 * float64(op.Bytes) / float64(g.HBM.Value) * 1e12)
		run.Limit.Text = fmt.Sprintf("%s (%v, read and written), in place nothing is done", text, g.HBM.Value)
		if run.Parts.Moving > run.Parts.Launch {
			run.Limit.Kind = result.ByMemory
		}
	}
	run.Time = run.Parts.Launch + run.Parts.Moving
}
