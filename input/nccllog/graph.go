package nccllog

import (
	"strconv"
	"strings"
)

// parseChannel reads both meanings of "Channel": a ring ("Channel 00/02 : 0 1 2 3")
// and a connection ("Channel 00/0 : 0[0] -> 1[0] via …"). The arrow tells them
// apart.
func parseChannel(r *Record) any {
	if strings.Contains(r.Text, "->") {
		return parseConnection(r)
	}
	f := strings.Fields(r.Text)
	if len(f) < 3 {
		return nil
	}
	ch, total, slash := strings.Cut(f[1], "/")
	ring := &Ring{Channel: number(ch)}
	rest := f[2:]
	if rest[0] == ":" {
		rest = rest[1:]
	}
	if ring.Channel < 0 || len(rest) == 0 || slash && number(total) < 0 {
		return nil
	}
	for _, s := range rest {
		if strings.HasPrefix(s, "..") {
			ring.Cut = true
			break
		}
		n := number(s)
		if n < 0 {
			return nil
		}
		ring.Ranks = append(ring.Ranks, n)
	}
	return ring
}

// plan adds to the set-up that a thread is at what it printed of its plans.
func (c *Reader) plan(r *Record, message any) {
	k := c.current(r)
	if k == nil {
		return
	}
	k.plans = k.plans || message != settingUp
	switch m := message.(type) {
	case *Ring:
		if c.keeps(len(k.Rings)+1, "rings") {
			k.Rings = append(k.Rings, *m)
		}
	case Trees:
		if k.Rank < 0 {
			k.Rank = m[0].Rank
		}
		if c.keeps(len(k.Trees)+len(m), "trees") {
			k.Trees = append(k.Trees, m...)
		}
	}
}

// keeps reports whether so many plans of a rank are kept.
func (c *Reader) keeps(n int, what string) bool {
	if !c.brief && n > maxChannels {
		c.drop(what)
	}
	return !c.brief && n <= maxChannels
}

// parseTrees reads "Trees [0] 2/-1/-1->0->-1 [1] …": children, rank, parent. 2.5 to
// 2.7 add the way down behind a bar.
func parseTrees(r *Record) any {
	var nodes Trees
	f := strings.Fields(r.Text)
	for i := 1; i < len(f); i += 2 {
		ch := number(strings.Trim(f[i], "[]"))
		if ch < 0 || !strings.HasPrefix(f[i], "[") || i+1 == len(f) {
			break // the end of a line that NCCL cut
		}
		up, _, _ := strings.Cut(f[i+1], "|")
		v := strings.Split(up, "->")
		if len(v) != 3 {
			break
		}
		kids, ok := children(v[0])
		rank, parent := number(v[1]), number(v[2])
		if !ok || rank < 0 || v[2] == "" || parent < 0 && v[2] != "-1" {
			break
		}
		nodes = append(nodes, TreeNode{ch, rank, parent, kids})
	}
	if len(nodes) == 0 {
		return nil
	}
	return nodes
}

// children reads "2/-1/-1".
func children(s string) ([]int, bool) {
	var kids []int
	for _, t := range strings.Split(s, "/") {
		n, err := strconv.Atoi(t)
		if err != nil || n < -1 || len(kids) > 64 {
			return nil, false
		}
		if n >= 0 {
			kids = append(kids, n)
		}
	}
	return kids, true
}
