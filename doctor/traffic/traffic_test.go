package traffic

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"busbar.dev/input/nccllog"
	"busbar.dev/internal/test/corpus"
)

func read(t *testing.T, name, text, comm string) *Run {
	t.Helper()
	l, err := nccllog.ReadLog(name, strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	r, err := From(l, comm)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func example(t *testing.T) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "rings.log"))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func odd(r *Run) []string {
	var ids []string
	for _, o := range r.Odd {
		ids = append(ids, o.ID)
	}
	return ids
}

// A ring of four on two hosts, two channels: each crossing carries 2·3/4·1/2 of the
// bytes, and all of them pass mlx5_0.
func TestLoads(t *testing.T) {
	r := read(t, "rings.log", example(t), "")
	if len(r.Hosts) != 2 || len(r.Channels) != 2 || len(r.NICs) != 4 {
		t.Fatalf("%d hosts, %d channels, %d NICs", len(r.Hosts), len(r.Channels), len(r.NICs))
	}
	for i, n := range r.NICs {
		want := 1.5
		if n.Dev == 1 {
			want = 0
		}
		if math.Abs(n.Out-want) > 1e-9 || math.Abs(n.In-want) > 1e-9 {
			t.Errorf("%s of %s: %g out, %g in; want %g", r.NICName(i), r.Hosts[n.Host].Name, n.Out, n.In, want)
		}
	}
	if got := odd(r); !slices.Equal(got, []string{"nic-idle"}) {
		t.Errorf("odd: %v", got)
	}
}

// Half of the ranks give half of the picture.
func TestSomeRanks(t *testing.T) {
	var part []string
	for _, line := range strings.SplitAfter(example(t), "\n") {
		if strings.HasPrefix(line, "node0:") {
			part = append(part, line)
		}
	}
	r := read(t, "node0.log", strings.Join(part, ""), "")
	if !slices.Equal(r.Unseen, []int{2, 3}) || !slices.Contains(odd(r), "ranks-missing") {
		t.Errorf("unseen %v, odd %v", r.Unseen, odd(r))
	}
	if len(r.Hosts) != 1 || math.Abs(r.NICs[0].Out-1.5) > 1e-9 {
		t.Errorf("%d hosts, NICs %+v", len(r.Hosts), r.NICs)
	}
}

func TestPairThroughHostMemory(t *testing.T) {
	text := strings.ReplaceAll(example(t), "Channel 00/0 : 2[0] -> 3[1] via P2P/CUMEM",
		"Channel 00/0 : 2[0] -> 3[1] via SHM/direct/direct")
	r := read(t, "shm.log", text, "")
	if !slices.Contains(odd(r), "pair-shm") {
		t.Errorf("odd: %v", odd(r))
	}
}

func TestCommIsChosen(t *testing.T) {
	l, err := nccllog.ReadLog("rings.log", strings.NewReader(example(t)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := From(l, "0xb5b5b5b5"); err != nil {
		t.Error(err)
	}
	if _, err := From(l, "7"); err == nil || !strings.Contains(err.Error(), "0xb5b5b5b5") {
		t.Errorf("error %v does not list the communicators", err)
	}
	l, err = nccllog.ReadLog("x", strings.NewReader("a:1:2 [0] NCCL INFO Using network IB\n"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := From(l, ""); err == nil || !strings.Contains(err.Error(), "NCCL_DEBUG") {
		t.Errorf("error %v does not say what to do", err)
	}
}

// What every ring sends into hosts it also sends out of them, and the whole of
// what rings send over the network is their crossings.
func TestCorpusBalances(t *testing.T) {
	want := map[string]struct {
		ranks, hosts, channels, nics int
	}{
		"2.19.3-h100x16-nebius-2node.log": {16, 2, 16, 16},
		"2.12.10-a100x8-dell-2node.log":   {8, 2, 4, 4},
		"2.7.8-v100x64-16node-opa.log":    {64, 16, 4, 64},
		"2.9.9-p4d-efa-eks.log":           {16, 2, 8, 8},
		"2.18.5-h100x8-2node-xe8640.log":  {8, 2, 16, 8},
		"2.22.3-h200x8-dell-xe9680.log":   {8, 1, 24, 0},
	}
	for name, w := range want {
		r := read(t, name, string(corpus.Open(t, "nccl-log/"+name)), "")
		if r.NRanks != w.ranks || len(r.Hosts) != w.hosts || len(r.Channels) != w.channels || len(r.NICs) != w.nics {
			t.Errorf("%s: %d ranks, %d hosts, %d channels, %d NICs; want %+v", name, r.NRanks, len(r.Hosts), len(r.Channels),
				len(r.NICs), w)
		}
		var out, in, crossings float64
		for _, n := range r.NICs {
			out, in = out+n.Out, in+n.In
		}
		for i := range r.Hops {
			if h := &r.Hops[i]; h.Ring && h.Transport == "NET" {
				crossings += 2 * float64(w.ranks-1) / float64(w.ranks*w.channels)
			}
		}
		if math.Abs(out-in) > 1e-9 || math.Abs(out-crossings) > 1e-9 {
			t.Errorf("%s: %g out, %g in, %g by crossings", name, out, in, crossings)
		}
		for _, c := range r.Channels {
			if c.Cut || len(c.Ring) != w.ranks {
				t.Errorf("%s: ring of channel %d has %d of %d ranks", name, c.Index, len(c.Ring), w.ranks)
			}
		}
	}
}

func FuzzFrom(f *testing.F) {
	data, err := os.ReadFile(filepath.Join("..", "..", "docs", "examples", "rings.log"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(string(data))
	f.Add("a:1:2 [0] NCCL INFO Channel 00/02 : 0 1 2\na:1:2 [0] NCCL INFO Trees [0] 1/-1/-1->0->0\na:1:2 [0] NCCL INFO " +
		"Channel 00/0 : 0[0] -> 9[0] [send] via NET/IB/0\n")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := nccllog.ReadLog("f", strings.NewReader(text))
		if err != nil {
			return
		}
		_, _ = From(l, "")
	})
}
