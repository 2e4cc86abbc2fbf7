package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/words"
	"busbar.dev/unit"
)

// trunk is what a switch has in one direction: cables, or, where a scheduler only
// says what belongs to what, hosts or switches without a cable being known.
type trunk struct {
	speeds  []speed // slowest first; a rate of 0 is one that nobody knows
	members int     // hosts or switches to which no cable is known
	tier    int     // of the switches among them; the lowest
	most    bool    // some boxes have fewer
}

// speed is how many cables run at a rate.
type speed struct {
	rate unit.Rate
	n    int
}

func (t *trunk) add(n int, r unit.Rate) {
	if n == 0 {
		return
	}
	at, ok := slices.BinarySearchFunc(t.speeds, r, func(s speed, r unit.Rate) int { return cmp.Compare(s.rate, r) })
	if !ok {
		t.speeds = slices.Insert(t.speeds, at, speed{rate: r})
	}
	t.speeds[at].n += n
}

// join adds hosts or switches to which no cable is known.
func (t *trunk) join(n, tier int) {
	if t.members == 0 || tier < t.tier {
		t.tier = tier
	}
	t.members += n
}

// rate is all cables together, one direction; ok is false when a cable's rate is
// not known or when it is not known what the cables are.
func (t *trunk) rate() (sum unit.Rate, ok bool) {
	for _, s := range t.speeds {
		if s.rate == 0 {
			return 0, false
		}
		sum += s.rate * unit.Rate(s.n)
	}
	return sum, t.members == 0
}

// rated reports whether the rate of any cable is known.
func (t *trunk) rated() bool { return len(t.speeds) > 0 && t.speeds[len(t.speeds)-1].rate > 0 }

// each is the part of one of several boxes that an entry of the network stands for; the greatest where they cannot have equal parts.
func (t *trunk) each(boxes int) *trunk {
	if boxes < 2 {
		return t
	}
	one := trunk{members: t.members, tier: t.tier, speeds: slices.Clone(t.speeds)}
	for i := range one.speeds {
		one.most = one.most || one.speeds[i].n%boxes != 0
		one.speeds[i].n = (one.speeds[i].n + boxes - 1) / boxes
	}
	return &one
}

// maxSpeeds is how many rates are told apart in one cell of a table.
const maxSpeeds = 3

// cables says how many cables there are of which rate.
func (t *trunk) cables() string {
	n := 0
	for _, s := range t.speeds {
		n += s.n
	}
	switch {
	case n == 0:
		return ""
	case !t.rated():
		return words.Plural(n, "cable")
	case len(t.speeds) > maxSpeeds:
		low, high := t.speeds[0].rate.Bits(), t.speeds[len(t.speeds)-1].rate.Bits()
		if t.speeds[0].rate == 0 {
			low = "unknown"
		}
		return fmt.Sprintf("%s, %s to %s", words.Plural(n, "cable"), low, high)
	}
	parts := make([]string, len(t.speeds))
	for i, s := range t.speeds {
		parts[i] = fmt.Sprintf("%d × %s", s.n, s.rate.Bits())
		if s.rate == 0 {
			parts[i] = fmt.Sprintf("%d × ?", s.n)
		}
	}
	if t.most {
		parts[0] = "up to " + parts[0]
	}
	return strings.Join(parts, ", ")
}

// tierCount counts the switches of a tier: "20 leaves".
func tierCount(n, tier int) string {
	name := cluster.Tier(tier).String()
	switch {
	case tier > int(cluster.Core):
		return words.Plural(n, name+" switch")
	case tier == int(cluster.Leaf) && n != 1:
		return fmt.Sprint(n, " leaves")
	}
	return words.Plural(n, name)
}

// belongs reports a link of which nothing is known but what it joins: a tree that
// a scheduler was told, and not cables that somebody saw.
func belongs(l *cluster.NetLink) bool {
	for _, e := range []cluster.End{l.A, l.B} {
		if e.Port > 0 || e.ToHosts() && e.NIC >= 0 {
			return false
		}
	}
	return !l.Rate.Known() && !l.Max.Known() && l.Speed == "" && l.Lanes == 0 && l.Count <= 1 && l.State == cluster.StateUnknown
}
