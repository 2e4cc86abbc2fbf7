package rates

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/finding"
	"busbar.dev/input/inspector"
	"busbar.dev/input/profile"
	"busbar.dev/internal/test/ringfile"
	"busbar.dev/unit"
)

// train makes the rings of a job of tp times dp ranks, two ranks a node: every step computes, then reduces among tp
// ranks and among dp ranks, several times. slow has a rank compute longer by a share, wire lengthens the transfers of a
// communicator.
func train(seed uint64, dp, steps int, slow map[int]float64, wire map[uint64]float64) []*profile.Ring {
	const tp, compute = 2, 20_000.0 // µs
	rng := rand.New(rand.NewPCG(seed, 1))
	n := tp * dp
	began := time.Unix(1_800_000_000, 0)
	rings := make([]*profile.Ring, n)
	for r := range rings {
		rings[r] = &profile.Ring{
			PID: 1000 + r, Host: fmt.Sprintf("node%d", r/2), Rank: r, LocalRank: r % 2, World: n, Created: began, Job: "7",
			Comms: []profile.Comm{
				{Hash: uint64(100 + r/tp), Rank: r % tp, Ranks: tp, Nodes: 1},
				{Hash: uint64(200 + r%tp), Rank: r / tp, Ranks: dp, Nodes: dp},
			},
		}
	}
	clock := make([]float64, n)
	seq := make([][2]uint64, n)
	reduce := func(which int, size uint64, transfer float64) {
		groups := map[uint64][]int{}
		for r := range rings {
			h := rings[r].Comms[which].Hash
			groups[h] = append(groups[h], r)
		}
		for h, g := range groups {
			last := 0.0
			for _, r := range g {
				last = max(last, clock[r])
			}
			took := transfer * (1 + 0.03*rng.Float64())
			if f := wire[h]; f > 0 {
				took *= f
			}
			for _, r := range g {
				end := last + took + rng.Float64()*3
				rings[r].Ops = append(rings[r].Ops, profile.Op{
					Function: "AllReduce", Kind: coll.AllReduce, Comm: which, Sequence: seq[r][which], Type: "Float32",
					Count: size / 4, Bytes: unit.Bytes(size), Algo: "ring", Proto: "simple", Channels: 4,
					Launched: began.Add(time.Duration(clock[r] * 1e3)), Started: true, Ended: true, GPU: true,
					Took: time.Duration((end - clock[r]) * 1e3),
				})
				clock[r], seq[r][which] = end, seq[r][which]+1
			}
		}
	}
	for range steps {
		for r := range rings {
			clock[r] += compute * (1 + slow[r] + 0.02*rng.NormFloat64())
		}
		for range 3 {
			reduce(0, 4<<20, 80)
		}
		for range 2 {
			reduce(1, 64<<20, 1500)
		}
	}
	return rings
}

func joined(t *testing.T, most Bounds, list ...*Window) *Report {
	t.Helper()
	r, err := Join(t.Context(), most, list...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func reportOf(t *testing.T, rings []*profile.Ring, samples int) *Report {
	t.Helper()
	var list []*Window
	for at := 0; at < len(rings); at += 2 { // a node
		w := NewWindow(samples)
		for _, r := range rings[at:min(at+2, len(rings))] {
			read, err := profile.Read("ring", ringfile.Encode(r), 0)
			if err != nil {
				t.Fatal(err)
			}
			w.AddRing(read, time.Time{})
		}
		list = append(list, w.Done())
	}
	return joined(t, Bounds{}, list...)
}

// TestLate has a rank slowed by 10, 20 and 30% named in every run, and none in a job whose ranks are alike.
func TestLate(t *testing.T) {
	for seed := range uint64(6) {
		if r := reportOf(t, train(seed, 4, 60, nil, nil), 64); len(r.Jobs) != 1 || r.Jobs[0].Late != nil ||
			len(r.Findings()) > 0 {
			t.Errorf("seed %d: nobody is late: %+v %+v", seed, r.Jobs[0].Late, r.Findings())
		}
		for i, share := range []float64{0.1, 0.2, 0.3} {
			want := (int(seed) + i) % 8
			r := reportOf(t, train(seed, 4, 60, map[int]float64{want: share}, nil), 64)
			l := r.Jobs[0].Late
			if l == nil || !slices.Equal(l.Ranks, []int{want}) || l.Host != fmt.Sprintf("node%d", want/2) {
				t.Errorf("seed %d, rank %d slower by %v: %+v", seed, want, share, l)
				continue
			}
			if l.Share < share/2 || l.Share > share {
				t.Errorf("rank %d slower by %v: others wait %v of the time", want, share, l.Share)
			}
			for _, f := range r.Findings() {
				if f.Kind == "slow-collective" {
					t.Errorf("a late rank is taken for the network: %+v", f)
				}
			}
		}
	}
}

// TestLateNode names a node whose ranks are slow by turns.
func TestLateNode(t *testing.T) {
	r := reportOf(t, train(3, 4, 60, map[int]float64{4: 0.2, 5: 0.2}, nil), 64)
	if l := r.Jobs[0].Late; l == nil || l.Host != "node2" || len(l.Ranks) != 2 {
		t.Errorf("%+v", l)
	}
}

// TestSlowNetwork tells a network at half its rate from a late rank, by what was expected and by communicators of the
// same shape.
func TestSlowNetwork(t *testing.T) {
	r := reportOf(t, train(5, 4, 60, nil, map[uint64]float64{200: 2}), 64)
	j := &r.Jobs[0]
	if j.Late != nil {
		t.Errorf("nobody is late: %+v", j.Late)
	}
	slow := 0
	for i := range j.Rows {
		row := &j.Rows[i]
		if row.Comm == "c8" || row.Comm == "c9" {
			high := unit.Micros(2000)
			row.Expected = &Expected{Time: unit.Micros(1500), Low: unit.Micros(1100), High: high, Algo: "ring"}
			row.judge()
			if slowRow := row.Verdict == SlowNetwork; slowRow != (row.Comm == "c8") {
				t.Errorf("%+v", row)
			}
			slow++
		}
	}
	if list := r.Findings(); slow != 2 || len(list) != 1 || list[0].Kind != "slow-collective" || list[0].Factor < 0.45 ||
		list[0].Factor > 0.55 {
		t.Errorf("%d %+v", slow, list)
	}
}

// TestPeers needs no prediction where there are communicators of the same shape.
func TestPeers(t *testing.T) {
	r := reportOf(t, train(5, 4, 40, nil, map[uint64]float64{101: 2}), 64)
	list := r.Findings()
	if len(list) != 1 || list[0].Kind != "slow-collective" || !slices.Equal(list[0].Nodes, []string{"node1"}) ||
		list[0].Where != "node1" {
		t.Errorf("%+v", list)
	}
}

// TestHiccups has most calls of one communicator last longer by a scheduler's turn, as on hosts with more threads than
// cores: its link is as fast as ever in the others, and the rank that is late as well is named.
func TestHiccups(t *testing.T) {
	rings := train(5, 4, 60, map[int]float64{3: 0.2}, nil)
	for r := range rings {
		for i := range rings[r].Ops {
			if o := &rings[r].Ops[i]; o.Comm == 1 && r%2 == 0 && o.Sequence%5 != 0 {
				o.Took += 4 * time.Millisecond
			}
		}
	}
	r := reportOf(t, rings, 1<<10)
	list := r.Findings()
	if len(list) != 1 || list[0].Kind != "late-rank" || !slices.Equal(list[0].Ranks, []int{3}) {
		t.Errorf("%+v", list)
	}
	for i := range r.Jobs[0].Rows {
		if row := &r.Jobs[0].Rows[i]; row.Comm == "c8" {
			row.Expected = &Expected{Time: unit.Micros(1500), Low: unit.Micros(1100), High: unit.Micros(2000), Algo: "ring"}
			if row.judge(); row.Transfer < row.Expected.High || row.Verdict == SlowNetwork || row.Verdict == Both {
				t.Errorf("%+v", row)
			}
		}
	}
}

// TestWoken has the first communicator of a step, which waits for threads to wake up, not called slow beside those
// behind it.
func TestWoken(t *testing.T) {
	j := Job{Rows: make([]Row, 4)}
	for i := range j.Rows {
		j.Rows[i] = Row{
			Op: "all_reduce", Ranks: 2, Nodes: 2, Bytes: 256 * unit.KiB, Transfer: unit.Micros(220), Fast: unit.Micros(175),
		}
	}
	for _, longer := range []float64{80, 400} {
		r := &j.Rows[1]
		r.Transfer, r.Fast = unit.Micros(240+longer), unit.Micros(175+longer)
		j.compare()
		if r.judge(); (r.Verdict == SlowNetwork) != (longer == 400) {
			t.Errorf("longer by %v µs: %+v", longer, r)
		}
	}
}

// TestSampling keeps the same calls of all ranks.
func TestSampling(t *testing.T) {
	r := reportOf(t, train(5, 4, 200, map[int]float64{3: 0.2}, nil), 64)
	if l := r.Jobs[0].Late; l == nil || !slices.Equal(l.Ranks, []int{3}) {
		t.Errorf("%+v", l)
	}
	for _, row := range r.Jobs[0].Rows {
		if row.Compared == 0 || row.Compared > 64 || row.Count < 400 {
			t.Errorf("%+v", row)
		}
	}
}

// TestInspector reads the other source.
func TestInspector(t *testing.T) {
	var list []inspector.Record
	for i := range int32(40) {
		for r := range int32(2) {
			list = append(list, inspector.Record{
				Comm: "0xab", Host: "h", Op: "AllReduce", Time: int64(i) * 1000, Bytes: 1 << 20, Rank: r, Ranks: 2, PID: 10 + r,
				Seq: i, ExecUs: float32(100 + 300*r),
			})
		}
	}
	w := NewWindow(64)
	w.AddInspector(list, time.Time{})
	r := joined(t, Bounds{}, w.Done())
	if len(r.Jobs) != 1 || len(r.Jobs[0].Rows) != 1 {
		t.Fatalf("%+v", r)
	}
	row := r.Jobs[0].Rows[0]
	if row.Verdict != Waits || row.LateRank != 0 || row.Transfer != unit.Micros(100) || row.Group != "world" {
		t.Errorf("%+v", row)
	}
	if l := r.Jobs[0].Late; l == nil || l.Ranks[0] != 0 {
		t.Errorf("%+v", l)
	}
}

// oneMemberJobs is a window of processes that have a communicator each.
func oneMemberJobs(n int) *Window {
	w := &Window{}
	for i := range n {
		w.Members = append(w.Members, Member{Comm: fmt.Sprint(i), Ranks: 1, Host: "a", PID: i + 1})
		w.Parts = append(w.Parts, Part{Member: i, Op: "all_reduce", Count: 1})
	}
	return w
}

// TestJoinIsLinear: twice as many jobs take about twice the memory, not four times as much. Bytes are counted, for a
// clock would tell of other programs.
func TestJoinIsLinear(t *testing.T) {
	taken := func(n int) uint64 {
		w := oneMemberJobs(n)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if r := joined(t, Bounds{}, w); len(r.Jobs) != n {
			t.Fatalf("%d jobs of %d", len(r.Jobs), n)
		}
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	taken(100)
	a, b := taken(2000), taken(8000)
	if b > 6*a {
		t.Errorf("%d bytes for 2000 jobs and %d for 8000", a, b)
	}
	t.Logf("%d bytes for 2000 jobs and %d for 8000", a, b)
}

// TestBounds: what one host has beyond its share is left out and told, of every sort, and others lose nothing by it.
func TestBounds(t *testing.T) {
	most := Bounds{Processes: 8, Members: 16, Rows: 4}
	other := &Window{
		Members: []Member{{Comm: "x", Ranks: 1, Host: "b", PID: 1}}, Parts: []Part{{Op: "send", Count: 1}},
	}
	many := oneMemberJobs(900)
	for i := range 40 {
		many.Members = append(many.Members, Member{Comm: fmt.Sprint("c", i), Ranks: 1, Host: "a", PID: 1})
	}
	r := joined(t, most, many, other)
	rows := 0
	for _, j := range r.Jobs {
		rows += len(j.Rows)
	}
	if len(r.Jobs) != most.Processes+1 || rows != most.Rows+1 {
		t.Errorf("%d jobs and %d rows", len(r.Jobs), rows)
	}
	if list := r.Findings(); len(list) != 1 || list[0].ID != "jobs-cut:a" || list[0].Severity != finding.Warn {
		t.Errorf("%+v", list)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Join(ctx, most, other); err == nil {
		t.Error("a context that is over is no matter")
	}
}

// TestUnpackSpeaksForItsHost: members are the sender's, a rank that another host claims counts for neither, and figures
// that would make sums endless are left out.
func TestUnpackSpeaksForItsHost(t *testing.T) {
	w := &Window{
		Members: []Member{{Comm: "1\x1b[2J", Rank: 0, Ranks: 2, Host: "b", PID: 7, Job: strings.Repeat("x", 100)}},
		Parts: []Part{
			{Op: "all_reduce", Count: 1, Samples: []Sample{{Us: 1e300}, {Us: 1e-300}, {Us: 5}, {Us: 5, At: -1}}},
			{Op: "all_reduce", Count: 1, Member: 1},
			{Op: "all_reduce", Count: 1, Class: 63},
			{Op: "all_reduce"},
		},
	}
	pack := func(w *Window) []byte {
		data, err := w.Pack()
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	a, err := Unpack(pack(w), "a")
	if err != nil || a.Members[0].Host != "a" || a.Members[0].Comm != "1 [2J" || len(a.Members[0].Job) != 64 ||
		len(a.Parts) != 1 || len(a.Parts[0].Samples) != 1 {
		t.Fatalf("%v %+v", err, a)
	}
	b, err := Unpack(pack(w), "b")
	if err != nil {
		t.Fatal(err)
	}
	r := joined(t, Bounds{}, a, b)
	if len(r.Jobs) != 2 || len(r.Jobs[0].Rows)+len(r.Jobs[1].Rows) != 0 {
		t.Errorf("%+v", r.Jobs)
	}
	if list := r.Findings(); len(list) != 1 || list[0].ID != "contested-rank:a,b" {
		t.Errorf("%+v", list)
	}
	w.Members[0].World = 1 << 40
	if _, err := Unpack(pack(w), "a"); err == nil {
		t.Error("a world of a trillion ranks was taken")
	}
	if data, err := (&Window{Members: make([]Member, 1<<14)}).Pack(); err == nil {
		t.Errorf("%d bytes were packed", len(data))
	}
}
