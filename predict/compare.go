package predict

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/unit"
)

// Side is one layout that was predicted.
type Side struct {
	Layout string  `json:"layout"` // 2x2
	Nodes  int     `json:"nodes"`
	Ranks  int     `json:"ranks"`
	Gain   float64 `json:"best_gain,omitempty"` // see Recommendation; 0 where nothing else could be tried
}

// Verdict is who wins at one size, and why, in one sentence.
type Verdict struct {
	Size   unit.Bytes `json:"size_bytes"`
	Winner string     `json:"winner"`
	Text   string     `json:"text"`
	// What sizes have in common that are told together: whom it clearly beats, by how much and what limits that one.
	// Empty where the layouts are alike.
	Loser  string  `json:"loser,omitempty"`
	Factor float64 `json:"factor,omitempty"` // the loser's time over the winner's
	Reason string  `json:"reason,omitempty"`
}

// VerdictGroup is verdicts with the same winner and the same reason, told once.
type VerdictGroup struct {
	Sizes []unit.Bytes
	Text  string
}

// GroupVerdicts puts verdicts together, in the order in which they first come.
func GroupVerdicts(list []Verdict) []VerdictGroup {
	type key struct{ winner, loser, reason string }
	var order []key
	groups := map[key][]Verdict{}
	for _, v := range list {
		k := key{v.Winner, v.Loser, v.Reason}
		if v.Loser == "" {
			k.winner = "" // whoever is ahead by a hair
		}
		if groups[k] == nil {
			order = append(order, k)
		}
		groups[k] = append(groups[k], v)
	}
	var out []VerdictGroup
	for _, k := range order {
		out = append(out, groupVerdict(groups[k]))
	}
	return out
}

// groupVerdict tells of the greatest size, where the difference is one that counts.
func groupVerdict(list []Verdict) VerdictGroup {
	last := list[len(list)-1]
	r := VerdictGroup{Text: last.Text}
	lo, hi := last.Factor, last.Factor
	for _, v := range list {
		r.Sizes = append(r.Sizes, v.Size)
		lo, hi = min(lo, v.Factor), max(hi, v.Factor)
	}
	switch {
	case last.Loser == "":
		r.Text = strings.TrimPrefix(last.Text, fmt.Sprintf("at %v ", last.Size))
	case len(list) > 1:
		r.Text = fmt.Sprintf("%s wins, %.2g to %.2g times as fast as %s; at %v %s", last.Winner, lo, hi, last.Loser,
			last.Size, strings.TrimPrefix(last.Text, last.Winner+" wins: "))
	}
	return r
}

// Compare says for every size which layout is fastest. A layout counts by the row
// that NCCL takes, or by its fastest where that row is not among those asked for.
func Compare(sides []Side, rows []Row, advice []Advice) []Verdict {
	var out []Verdict
	bySize := map[unit.Bytes][]Row{}
	for _, r := range rows {
		bySize[r.Asked] = append(bySize[r.Asked], r)
	}
	for _, size := range slices.Sorted(maps.Keys(bySize)) {
		var list []layoutAtSize
		for _, s := range sides {
			own := slices.DeleteFunc(slices.Clone(bySize[size]), func(r Row) bool { return r.Layout != s.Layout || r.Beyond })
			if r, ok := representative(own); ok {
				list = append(list, layoutAtSize{s, r, own})
			}
		}
		slices.SortStableFunc(list, func(a, b layoutAtSize) int { return cmp.Compare(a.row.Time, b.row.Time) })
		if len(list) > 1 {
			v := Verdict{Size: size, Winner: list[0].side.Layout, Text: sentence(size, list, advice)}
			if first, last := list[0], list[len(list)-1]; clearly(last.row.Time, first.row.Time) {
				v.Loser, v.Factor = last.side.Layout, float64(last.row.Time)/float64(first.row.Time)
				v.Reason = string(last.row.Limit.Kind) + " " + last.row.Limit.Where
			}
			out = append(out, v)
		}
	}
	return out
}

// layoutAtSize is a layout at one size.
type layoutAtSize struct {
	side Side
	row  Row   // that stands for it
	rows []Row // all that NCCL can run
}

// representative is the row that stands for a layout at a size.
func representative(rows []Row) (best Row, ok bool) {
	for _, r := range rows {
		if r.Chosen {
			return r, true
		}
		if !ok || r.Time < best.Time {
			best, ok = r, true
		}
	}
	return best, ok
}

// sentence says who wins, why the last loses and what to do about it.
func sentence(size unit.Bytes, list []layoutAtSize, advice []Advice) string {
	first, last := list[0], list[len(list)-1]
	var others []string
	for _, x := range list[1:] {
		others = append(others, fmt.Sprintf("%v (%s)", x.row.Time, x.side.Layout))
	}
	if !clearly(last.row.Time, first.row.Time) {
		return fmt.Sprintf("at %v the layouts are alike: %v (%s) against %s", size, first.row.Time, first.side.Layout,
			and(others))
	}
	because := last.row.Limit.Text
	if last.row.Limit.Where != "" {
		because = "at " + last.row.Limit.Where + ", " + because
	}
	return fmt.Sprintf("%s wins: %v against %s; %s loses because %s; %s", first.side.Layout, first.row.Time, and(others),
		last.side.Layout, because, remedy(first, last, advice))
}

// remedy is what to do: move the ranks, or else the setting that helps most where
// they are.
func remedy(first, last layoutAtSize, advice []Advice) string {
	text := fmt.Sprintf("use %s", first.side.Layout)
	if first.side.Ranks == last.side.Ranks {
		per := first.side.Ranks / max(first.side.Nodes, 1)
		switch {
		case first.side.Nodes == 1:
			text = fmt.Sprintf("put the %d GPUs on one node", first.side.Ranks)
		case per == 1:
			text = fmt.Sprintf("take one GPU on each of %d nodes", first.side.Nodes)
		default:
			text = fmt.Sprintf("take %d GPUs on each of %d nodes", per, first.side.Nodes)
		}
	} else {
		text += fmt.Sprintf(" if %d ranks will do where %s has %d", first.side.Ranks, last.side.Layout, last.side.Ranks)
	}
	better := last.row
	for _, r := range last.rows {
		if r.Time < better.Time {
			better = r
		}
	}
	for _, a := range advice {
		if a.Setting == "" || a.Layout != last.side.Layout {
			continue
		}
		text += fmt.Sprintf(", or set %s", a.Setting)
		if clearly(last.row.Time, better.Time) && strings.Contains(strings.ToLower(a.Setting), better.Algo) {
			text += fmt.Sprintf(" (%s: %v on %s)", better.Algo, better.Time, last.side.Layout)
		}
		break
	}
	return text
}

// and joins words with commas and an "and" before the last.
func and(list []string) string {
	if len(list) < 2 {
		return strings.Join(list, "")
	}
	return strings.Join(list[:len(list)-1], ", ") + " and " + list[len(list)-1]
}
