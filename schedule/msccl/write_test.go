package msccl

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"busbar.dev/coll"
	"busbar.dev/schedule"
)

var update = flag.Bool("update", false, "rewrite testdata/exports.txt")

func groupsOf(n, size int) [][]int {
	var groups [][]int
	for r := range n {
		if r%size == 0 {
			groups = append(groups, nil)
		}
		groups[len(groups)-1] = append(groups[len(groups)-1], r)
	}
	return groups
}

// works interprets a file in every place that it says it serves, and reads it back.
func works(text []byte, s *schedule.Schedule, rnd *rand.Rand) error {
	a, err := Read("x", bytes.NewReader(text))
	if err != nil {
		return err
	}
	x, err := unmarshal(text)
	if err != nil {
		return err
	}
	kind := s.Kind
	if kind == coll.Hypercube {
		kind = coll.AllGather
	}
	for _, inPlace := range []bool{true, false} {
		if inPlace && !a.InPlace || !inPlace && !a.OutOfPlace {
			continue
		}
		if err := interpret(x, kind, s.Root, inPlace, rnd); err != nil {
			return fmt.Errorf("in place %v: %w", inPlace, err)
		}
	}
	if _, err := a.Prove(); err != nil {
		return err
	}
	var again bytes.Buffer
	if err := a.Write(&again); err != nil || !bytes.Equal(again.Bytes(), text) {
		return fmt.Errorf("reading and writing changes the file: %v", err)
	}
	return nil
}

// TestExports lists which builders export at which sizes, in testdata/exports.txt, and runs every file.
func TestExports(t *testing.T) {
	sizes := []int{2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128}
	rnd := rand.New(rand.NewPCG(4, 5))
	var out strings.Builder
	fmt.Fprintln(&out, "# Which builders become MSCCL files, in groups of 4 (or of 2 where 4 does not divide), one channel,")
	fmt.Fprintln(&out, "# Simple protocol, any size. Numbers of ranks; then the first refusal of each kind.")
	ran := 0
	for _, b := range schedule.Builders() {
		for _, kind := range b.Kinds {
			var good, reasons []string
			seen := map[string]bool{}
			for _, n := range sizes {
				size := 4
				if n%4 != 0 {
					size = 2
				}
				s, err := b.Build(kind, schedule.Params{Ranks: n, Groups: groupsOf(n, size)})
				var text bytes.Buffer
				if err == nil {
					err = writeFile(&text, s, Settings{Rooted: true})
				}
				if err != nil {
					if key := short(err); !seen[key] {
						seen[key] = true
						reasons = append(reasons, fmt.Sprintf("    %d: %v", n, err))
					}
					continue
				}
				good = append(good, fmt.Sprint(n))
				if (n > 12 || n > 8 && testing.Short()) && os.Getenv("BUSBAR_LONG") == "" { // minutes on a slow machine
					continue
				}
				if err := works(text.Bytes(), s, rnd); err != nil {
					t.Errorf("%s: %v", s, err)
				}
				ran++
			}
			if len(good) == 0 {
				good = []string{"none"}
			}
			fmt.Fprintf(&out, "%s %s: %s\n", kind, b.Name, strings.Join(good, " "))
			for _, r := range reasons {
				fmt.Fprintln(&out, r)
			}
		}
	}
	t.Log(ran, "files interpreted")
	if *update {
		if err := os.WriteFile("testdata/exports.txt", []byte(out.String()), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile("testdata/exports.txt")
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != out.String() {
		t.Errorf("the table differs from testdata/exports.txt (run with -update and look):\n%s", out.String())
	}
}

// short is a refusal without its numbers.
func short(err error) string {
	return strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return -1
		}
		return r
	}, err.Error())
}

// TestRandom exports schedules with random orders, channels, groups, roots, protocols and sizes.
func TestRandom(t *testing.T) {
	seed := rand.Uint64()
	rnd := rand.New(rand.NewPCG(seed, 1))
	rounds := 4
	if testing.Short() {
		rounds = 3
	}
	ran, refused := 0, 0
	for range rounds {
		n := 2 + rnd.IntN(15)
		groups := groupsOf(n, 1+rnd.IntN(n))
		perm := rnd.Perm(n)
		for _, g := range groups {
			for i := range g {
				g[i] = perm[g[i]]
			}
		}
		for _, b := range schedule.Builders() {
			for _, kind := range b.Kinds {
				p := schedule.Params{
					Ranks: n, Root: rnd.IntN(n), Channels: 1 + rnd.IntN(3), Pieces: 1 + rnd.IntN(5), Order: rnd.Perm(n), Groups: groups,
					Inner: []string{"ring", "direct"}[rnd.IntN(2)], Outer: []string{"ring", "tree"}[rnd.IntN(2)],
				}
				if b.Name == "ring" && rnd.IntN(2) == 0 {
					p.Rings = [][]int{rnd.Perm(n), rnd.Perm(n)}
				}
				s, err := b.Build(kind, p)
				if err != nil || len(s.Switches) > 0 {
					continue
				}
				set := Settings{Rooted: true, InPlace: rnd.IntN(2) == 0, Proto: []string{"", "LL", "LL128"}[rnd.IntN(3)], Name: `a<"b">&`}
				var text bytes.Buffer
				if err := writeFile(&text, s, set); err != nil {
					var u *unprovenError
					if errors.As(err, &u) && !strings.Contains(err.Error(), "queue") {
						t.Errorf("seed %d: %s %+v: %v", seed, s, p, err)
					}
					refused++
					continue
				}
				if err := works(text.Bytes(), s, rnd); err != nil {
					t.Errorf("seed %d: %s %+v: %v", seed, s, p, err)
				}
				ran++
			}
		}
	}
	t.Logf("%d files interpreted, %d refused", ran, refused)
}

// TestRefusals names the rank and lane that do not fit, and what to do.
func TestRefusals(t *testing.T) {
	build := func(kind coll.Kind, name string, p schedule.Params) *schedule.Schedule {
		s, err := schedule.Build(kind, name, p)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	ring := func(n int) *schedule.Schedule { return build(coll.AllReduce, "ring", schedule.Params{Ranks: n}) }
	for _, tc := range []struct {
		name string
		s    *schedule.Schedule
		set  Settings
		want string
	}{
		{"steps", ring(64), Settings{}, "rank 0 lane 0 needs 127 steps; the reader takes 64"},
		{"many ranks", ring(20000), Settings{}, "thread blocks of 64 steps do not hold that"},
		{"millions", ring(1 << 20), Settings{}, "1048576 ranks; the reader takes"},
		{"one rank", ring(1), Settings{}, "1 rank"},
		{"protocol", ring(2), Settings{Proto: "ll"}, `protocol "ll"; expected Simple, LL or LL128`},
		{"name", ring(2), Settings{Name: strings.Repeat("x", 300)}, "a name of 300 bytes"},
		{"sizes", ring(2), Settings{MinBytes: 9, MaxBytes: 8}, "smaller one first"},
		{"lanes", build(coll.AllReduce, "ring", schedule.Params{Ranks: 2, Channels: 200}), Settings{}, "200 lanes"},
		{"blocks", build(coll.AllToAll, "direct", schedule.Params{Ranks: 30, Channels: 3}), Settings{}, "rank 0 lane 2 needs 90 thread blocks; the reader takes 64"},
		{"peers", build(coll.AllToAll, "direct", schedule.Params{Ranks: 40}), Settings{}, "rank 0 lane 0 has 39 peers; the reader takes 31"},
		{"root", build(coll.Broadcast, "tree", schedule.Params{Ranks: 4, Root: 2}), Settings{}, "calls with a root other than 2 would go wrong"},
		{"switch", build(coll.AllReduce, "nvls", schedule.Params{Ranks: 4}), Settings{}, "a switch computes"},
		{"nothing", nil, Settings{}, "no schedule"},
		{"no program", &schedule.Schedule{}, Settings{}, "no schedule"},
	} {
		if err := writeFile(io.Discard, tc.s, tc.set); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
	}
}

// A schedule that is wrong is not written.
func TestWrongSchedule(t *testing.T) {
	s, err := schedule.Build(coll.AllReduce, "ring", schedule.Params{Ranks: 4})
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(p schedule.Stored){
		"no fault":                   nil,
		"a copy where a sum belongs": func(p schedule.Stored) { p[1][0][1].Verb = schedule.Recv },
		"another chunk":              func(p schedule.Stored) { p[1][0][1].From, p[1][0][1].To = 0, 1 },
		"a message too few":          func(p schedule.Stored) { p[2][0] = p[2][0][:len(p[2][0])-1] },
		"another length":             func(p schedule.Stored) { p[2][0][0].To = 4; p[2][0][0].From = 0 },
		"a wait for nothing":         func(p schedule.Stored) { p[2][0][0].After = schedule.Wait{Lane: 7, Count: 1} },
		"a chunk beyond the end":     func(p schedule.Stored) { p[2][0][0].From, p[2][0][0].To = 99, 100 },
		"a peer that is not there":   func(p schedule.Stored) { p[2][0][0].Peer = 9 },
	} {
		bad := *s
		p := schedule.Store(s)
		if change != nil {
			change(p)
		}
		bad.Program = p
		if err := writeFile(io.Discard, &bad, Settings{}); (err == nil) != (change == nil) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzWrite changes the ops of schedules: what is written all the same is right.
func FuzzWrite(f *testing.F) {
	for i := range schedule.Builders() {
		f.Add(byte(i), byte(0), byte(3), []byte{0, 0, 1, 2, 3})
	}
	f.Fuzz(func(t *testing.T, builder, which, ranks byte, changes []byte) {
		list := schedule.Builders()
		b := list[int(builder)%len(list)]
		n := 2 + int(ranks)%6
		s, err := b.Build(b.Kinds[int(which)%len(b.Kinds)], schedule.Params{Ranks: n, Groups: groupsOf(n, 2)})
		if err != nil {
			return
		}
		p := schedule.Store(s)
		for len(changes) >= 5 {
			change(p, changes)
			changes = changes[5:]
		}
		bad := *s
		bad.Program = p
		var text bytes.Buffer
		if writeFile(&text, &bad, Settings{Rooted: true}) != nil {
			return
		}
		if err := works(text.Bytes(), &bad, rand.New(rand.NewPCG(1, 1))); err != nil {
			t.Errorf("%s: %v\n%s", s, err, text.String())
		}
	})
}

// change alters one field of one op.
func change(p schedule.Stored, b []byte) {
	lanes := p[int(b[0])%len(p)]
	ops := lanes[int(b[1])%len(lanes)]
	if len(ops) == 0 {
		return
	}
	o, v := &ops[int(b[2])%len(ops)], int32(int8(b[4]))
	switch b[3] % 9 {
	case 0:
		o.Verb = schedule.Verb(b[4] % 7)
	case 1:
		o.Buf = schedule.Buffer(b[4] % 4)
	case 2:
		o.Dst = schedule.Buffer(b[4] % 4)
	case 3:
		o.Peer = v
	case 4:
		o.From = v
	case 5:
		o.To = v
	case 6:
		o.At = v
	case 7:
		o.After.Lane = v
	case 8:
		o.After.Count = v
	}
}

// writeFile writes a schedule as an algorithm file.
func writeFile(w io.Writer, s *schedule.Schedule, set Settings) error {
	a, err := Lower(s, set)
	if err != nil {
		return err
	}
	return a.Write(w)
}
