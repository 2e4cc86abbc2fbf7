// Package tuner holds busbar's plugin for NCCL's choice of algorithm, protocol and channels: its
// source in C, which any compiler builds without NCCL's headers, and the table that it answers
// from.
package tuner

import (
	_ "embed" // of the plugin's source
	"fmt"
	"io"
	"math"
	"slices"

	"busbar.dev/coll"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

//go:embed plugin/busbar_tuner.c
var source string

// Source is the plugin in C. cc -O2 -shared -fPIC builds it.
func Source() string { return source }

// Row is one line of the table: what to take for sizes from Min to Max, both included.
type Row struct {
	Kind         coll.Kind
	Min, Max     unit.Bytes
	Ranks, Nodes int // 0 is any
	Algo, Proto  string
	Channels     int     // 0 is what NCCL takes
	Gain         float64 // how many times as fast as NCCL's own choice, at the size where that is least
}

// kinds are the collectives that NCCL asks a tuner about.
var kinds = []coll.Kind{coll.AllReduce, coll.AllGather, coll.ReduceScatter, coll.Broadcast, coll.Reduce}

// least and most are the sizes that are weighed, by doubling.
const (
	least = 1 * unit.KiB
	most  = 4 * unit.GiB
)

// Rows are the sizes at which another choice than NCCL's is predicted to be faster by more than predict.Worth
// on one layout; sizes beside each other with the same choice are one row.
func Rows(p *predict.Predictor, t coll.Dtype) ([]Row, error) {
	var sizes []unit.Bytes
	for s := least; s <= most; s *= 2 {
		sizes = append(sizes, s)
	}
	var list []Row
	for _, kind := range kinds {
		a, err := p.Ask(predict.Query{Kind: kind, Type: t, Sizes: sizes, Algos: []string{"all"}})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kind, err)
		}
		var last *Row
		for _, s := range sizes {
			r, ok := better(a, kind, s)
			if !ok {
				last = nil
				continue
			}
			r.Ranks, r.Nodes = len(p.Layout), p.Plan.NNodes
			if last != nil && last.Algo == r.Algo && last.Proto == r.Proto && last.Channels == r.Channels {
				last.Max, last.Gain = r.Max, min(last.Gain, r.Gain)
				continue
			}
			list = append(list, r)
			last = &list[len(list)-1]
		}
	}
	return list, nil
}

// better is a choice at a size that is worth its row.
func better(a *predict.Answer, kind coll.Kind, size unit.Bytes) (Row, bool) {
	var best, own *predict.Row
	for i := range a.Rows {
		r := &a.Rows[i]
		if r.Asked != size || r.Beyond {
			continue
		}
		if r.Chosen {
			own = r
		}
		if best == nil || r.Time < best.Time {
			best = r
		}
	}
	if own == nil || best == own || float64(own.Time) < predict.Worth*float64(best.Time) ||
		!slices.Contains(words, word(best.Setting().Algo)) {
		return Row{}, false
	}
	// A size stands for those about it, to halfway on the scale of doublings.
	return Row{
		Kind: kind, Min: unit.Bytes(float64(size)/math.Sqrt2) + 1, Max: unit.Bytes(float64(size) * math.Sqrt2),
		Algo: word(best.Setting().Algo), Proto: best.Setting().Proto, Channels: best.Setting().Channels,
		Gain: float64(own.Time) / float64(best.Time),
	}, true
}

// word is NCCL's name of an algorithm: its rings that are no rings are chains to us.
func word(algo string) string {
	if algo == "chain" {
		return "ring"
	}
	return algo
}

// words are the algorithms that the plugin knows.
var words = []string{"tree", "ring", "collnet_direct", "collnet_chain", "nvls", "nvls_tree", "pat"}

// Write writes the table.
func Write(w io.Writer, about string, rows []Row) error {
	if _, err := fmt.Fprintf(w, "# %s\n# collective min_bytes max_bytes ranks nodes algorithm protocol channels\n",
		about); err != nil {
		return err
	}
	for _, r := range rows {
		if _, err := fmt.Fprintf(w, "%s %d %d %d %d %s %s %d\n", r.Kind, r.Min, r.Max, r.Ranks, r.Nodes, r.Algo, r.Proto,
			r.Channels); err != nil {
			return err
		}
	}
	return nil
}

// CSV writes the same choices for NVIDIA's example plugin. That plugin sets one channel where no
// line matches or a line leaves channels open, so that every size has a line with a number: where no row
// is, what NCCL takes by itself.
func CSV(w io.Writer, p *predict.Predictor, t coll.Dtype, rows []Row) error {
	if _, err := fmt.Fprintln(w,
		"# collective_type,min_bytes,max_bytes,algorithm,protocol,channels,nNodes,nRanks"); err != nil {
		return err
	}
	for _, kind := range kinds {
		var last Row
		flush := func() error {
			if last.Channels == 0 {
				return nil
			}
			_, err := fmt.Fprintf(w, "%s,%d,%d,%s,%s,%d,%d,%d\n", csvNames[kind], last.Min, last.Max, last.Algo, last.Proto,
				last.Channels, last.Nodes, last.Ranks)
			return err
		}
		from := unit.Bytes(0)
		for s := least; s <= most; s *= 2 {
			r, err := chosen(p, coll.Op{Kind: kind, Type: t, Bytes: s}, rows)
			if err != nil {
				return err
			}
			r.Min, r.Max = from, unit.Bytes(float64(s)*math.Sqrt2)
			if s == most {
				r.Max = math.MaxInt64
			}
			from = r.Max + 1
			if last.Algo == r.Algo && last.Proto == r.Proto && last.Channels == r.Channels {
				last.Max = r.Max
				continue
			}
			if err := flush(); err != nil {
				return err
			}
			last = r
		}
		if err := flush(); err != nil {
			return err
		}
	}
	return nil
}

// chosen is what rows say of a size, or what NCCL takes by itself.
func chosen(p *predict.Predictor, op coll.Op, rows []Row) (Row, error) {
	for _, x := range rows {
		if x.Kind == op.Kind && op.Bytes >= x.Min && op.Bytes <= x.Max && x.Channels > 0 {
			return x, nil
		}
	}
	set, err := p.Auto(op)
	return Row{
		Kind: op.Kind, Algo: word(set.Algo), Proto: set.Proto, Channels: set.Channels, Ranks: len(p.Layout),
		Nodes: p.Plan.NNodes,
	}, err
}

// csvNames are that plugin's names of collectives; it takes any other for allreduce.
var csvNames = map[coll.Kind]string{
	coll.AllReduce: "allreduce", coll.AllGather: "allgather", coll.ReduceScatter: "reducescatter",
	coll.Broadcast: "broadcast", coll.Reduce: "reduce",
}
