package pairs

import (
	"fmt"
	"testing"
)

// counted is n ranks whose pairs have counters, edited.
func counted(n int, edit func(m *Measure)) *Table {
	t := &Table{}
	for i := range n {
		t.Names = append(t.Names, fmt.Sprintf("n%d", i))
		for j := range n {
			if i != j {
				m := Measure{From: i, To: j, Rate: 1e9, Both: 1e9, Latency: 20_000_000, Segments: 5000, Lost: 3, MSS: 8948}
				edit(&m)
				t.Cells = append(t.Cells, m)
			}
		}
	}
	return t
}

func TestWire(t *testing.T) {
	for name, tt := range map[string]struct {
		edit func(m *Measure)
		want string
	}{
		"healthy":       {func(*Measure) {}, "[]"},
		"all lose some": {func(m *Measure) { m.Lost = 60 }, "[]"}, // they compete for links
		"loss":          {func(m *Measure) { m.Lost += 100 * b(m.From == 3 || m.To == 3) }, "[packet-loss [3]]"},
		"loss sending":  {func(m *Measure) { m.Lost += 100 * b(m.From == 3) }, "[packet-loss [3]]"},
		"loss of two":   {func(m *Measure) { m.Lost += 100 * b(m.From+m.To == 1) }, "[packet-loss-pair [0 1]]"},
		"few segments":  {func(m *Measure) { m.Segments = 10 }, "[]"},
		"MTU":           {func(m *Measure) { m.MSS -= 8400 * int(b(m.From == 2 || m.To == 2)) }, "[small-mtu [2]]"},
		"MTU of two":    {func(m *Measure) { m.MSS -= 8400 * int(b(m.From == 2 && m.To == 4)) }, "[small-mtu-pair [2 4]]"},
		"cut off":       {func(m *Measure) { fail(m, m.From == 5 || m.To == 5) }, "[cut-off [5]]"},
		"no end of two": {func(m *Measure) { fail(m, m.From+m.To == 1) }, "[unfinished [0 1]]"},
	} {
		var got []string
		for _, f := range counted(8, tt.edit).Findings() {
			got = append(got, fmt.Sprint(f.Kind, f.Ranks))
		}
		if fmt.Sprint(got) != spaced(tt.want) {
			t.Errorf("%s: %v, expected %s", name, got, tt.want)
		}
	}
}

func b(is bool) int64 {
	if is {
		return 1
	}
	return 0
}

func fail(m *Measure, is bool) {
	if is {
		*m = Measure{From: m.From, To: m.To, Failed: "no end within 3 s"}
	}
}

// spaced is the list as fmt prints it: a kind and its ranks have no space between them.
func spaced(s string) string {
	out := []rune{}
	for i, c := range s {
		if c == ' ' && i+1 < len(s) && s[i+1] == '[' {
			continue
		}
		out = append(out, c)
	}
	return string(out)
}

// Every rank of a sample meets others once, in rounds without clashes, near ones and far ones.
func TestSample(t *testing.T) {
	for _, n := range []int{3, 8, 129, 1000, 1001} {
		rounds := Sample(n, 96)
		with := make([]map[int]bool, n)
		for r := range with {
			with[r] = map[int]bool{}
		}
		for k, round := range rounds {
			busy := map[int]bool{}
			for _, p := range round {
				if p[0] < 0 || p[0] >= p[1] || p[1] >= n || busy[p[0]] || busy[p[1]] || with[p[0]][p[1]] {
					t.Fatalf("%d ranks, round %d: %v", n, k, p)
				}
				busy[p[0]], busy[p[1]] = true, true
				with[p[0]][p[1]], with[p[1]][p[0]] = true, true
			}
		}
		if len(rounds) > 96 {
			t.Errorf("%d ranks: %d rounds", n, len(rounds))
		}
		for r, w := range with {
			near := with[r][r^1] || r^1 >= n
			if n > 128 && len(w) < 80 || !near {
				t.Fatalf("%d ranks: rank %d has %d partners, a neighbour: %v", n, r, len(w), near)
			}
		}
	}
}
