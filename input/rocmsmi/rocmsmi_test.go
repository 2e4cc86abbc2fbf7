package rocmsmi

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/internal/test/corpus"
	"busbar.dev/internal/test/readertest"
)

// sketch prints a node on one line: NUMA domain of each GPU, and xGMI links.
func sketch(n *cluster.NodeType) string {
	var b strings.Builder
	for _, i := range n.Of(cluster.GPU) {
		d := n.Devices[i]
		numa := "-"
		if at := n.NUMAOf(i); at >= 0 {
			numa = fmt.Sprint("numa", at)
		}
		fmt.Fprintf(&b, "%s@%s ", d.Name, numa)
	}
	for _, l := range n.Links {
		if l.Kind == cluster.XGMI {
			fmt.Fprintf(&b, "%s-%s", n.Devices[l.A].Name[3:], n.Devices[l.B].Name[3:])
			b.WriteByte(' ')
		}
	}
	return strings.TrimSpace(b.String())
}

// Every sample of the corpus, held to what a person finds in it.
func TestCorpus(t *testing.T) {
	want := map[string]struct{ sketch, warn string }{
		"rocm-smi-topo/mi210-x4-archer2-rocm5.txt": {
			"gpu0@numa0 gpu1@numa1 gpu2@numa2 gpu3@numa3 0-1 0-2 0-3 1-2 1-3 2-3", "",
		},
		"rocm-smi-topo/mi300a-x4-apu.txt": {
			"gpu0@numa0 gpu1@numa1 gpu2@numa2 gpu3@numa3 0-1 0-2 0-3 1-2 1-3 2-3", "",
		},
		"rocm-smi-topo/mi100-x2-pcie-squeezed.txt": {"gpu0@- gpu1@-", ""},
		"rocm-smi-topo/mi300-tpx-12part-xxxx.txt": {
			"gpu0@numa0 gpu1@numa0 gpu2@numa1 gpu3@numa2 gpu4@numa3 gpu5@numa0 gpu6@numa1 gpu7@numa2 gpu8@numa3 gpu9@numa1 " +
				"gpu10@numa2 gpu11@numa3 " +
				"0-1 0-2 0-3 0-4 0-5 0-6 0-7 0-8 0-9 0-10 0-11 1-5 1-6 1-7 1-8 1-9 1-10 1-11 2-5 2-6 2-7 2-8 2-9 2-10 2-11 3-5 " +
				"3-6 3-7 3-8 3-9 3-10 3-11 4-5 4-6 4-7 4-8 4-9 4-10 4-11 " +
				"5-9 5-10 5-11 6-9 6-10 6-11 7-9 7-10 7-11 8-9 8-10 8-11 9-10 9-11 10-11",
			"Cannot read Link Weight|6 GPUs have a NUMA affinity other than their NUMA node (GPU2: 1 and 0)|24 cells",
		},
	}
	seen := 0
	for _, e := range corpus.Index(t, "rocm-smi --showtopo") {
		seen++
		t.Run(e.File, func(t *testing.T) {
			data := corpus.Open(t, e.File)
			if !Match(data) {
				t.Error("not recognised")
			}
			f, err := Read(e.File, bytes.NewReader(data))
			if err != nil {
				t.Fatal(err)
			}
			w, ok := want[e.File]
			if !ok {
				t.Fatalf("no assertion for %q", e.MustFind)
			}
			if len(f.Types) != 1 || f.Types[0].Check() != nil {
				t.Fatalf("%d types; want one, sound", len(f.Types))
			}
			if got := sketch(f.Types[0]); got != w.sketch {
				t.Errorf("got\n%s\nwant\n%s", got, w.sketch)
			}
			checkWarnings(t, f.Warnings, w.warn)
			for _, g := range f.Types[0].Of(cluster.GPU) {
				if f.Types[0].Devices[g].GPU.Vendor != "amd" {
					t.Error("vendor is not amd")
				}
			}
		})
	}
	if seen != 4 {
		t.Errorf("%d samples; the index had 4 when this was written", seen)
	}
}

// No sample of another tool is taken for a topology of AMD's.
func TestMatchCorpus(t *testing.T) {
	for _, e := range corpus.Index(t) {
		if Match(corpus.Open(t, e.File)) != (e.Format == "rocm-smi --showtopo") {
			t.Errorf("%s (%s): wrong answer", e.File, e.Format)
		}
	}
}

func checkWarnings(t *testing.T, got []cluster.Warning, want string) {
	t.Helper()
	var parts []string
	if want != "" {
		parts = strings.Split(want, "|")
	}
	if len(got) != len(parts) {
		t.Errorf("warnings %v; want %q", got, parts)
		return
	}
	for i, w := range got {
		if !strings.Contains(w.String(), parts[i]) {
			t.Errorf("warning %q; want %q", w, parts[i])
		}
	}
}

// The texts below are synthetic; they imitate layouts met in the wild.
var layouts = []struct{ name, in, want, warn string }{
	{
		"two hops over xGMI are no link",
		"== Hops between two GPUs ==\n GPU0 GPU1 GPU2\nGPU0 0 1 2\nGPU1 1 0 1\nGPU2 2 1 0\n== Link Type between two GPUs " +
			"==\n GPU0 GPU1 GPU2\nGPU0 0 XGMI XGMI\nGPU1 XGMI 0 XGMI\nGPU2 XGMI XGMI 0\n",
		": gpu0@- gpu1@- gpu2@- 0-1 1-2", "",
	},
	{
		"two islands on two sockets",
		"== Hops between two GPUs ==\n GPU0 GPU1 GPU2\nGPU0 0 1 3\nGPU1 1 0 3\nGPU2 3 3 0\n== Link Type between two GPUs " +
			"==\n GPU0 GPU1 GPU2\nGPU0 0 XGMI PCIE\nGPU1 XGMI 0 PCIE\nGPU2 PCIE PCIE 0\n== Numa Nodes ==\nGPU[0]\t\t: " +
			"(Topology) Numa Node: 0\nGPU[0]\t\t: (Topology) Numa Affinity: 0\nGPU[1]   : (Topology) Numa Affinity: 0\nGPU 2 " +
			": (Topology) Numa Node: 1\nGPU[2] : (Topology) Numa Affinity: -1\n",
		": gpu0@numa0 gpu1@numa0 gpu2@numa1 0-1", "",
	},
	{
		"a pair of no known type",
		"== Link Type between two GPUs ==\n GPU0 GPU1 GPU2\nGPU0 0 XGMI XGMI\nGPU1 XGMI 0 XXXX\nGPU2 XGMI XXXX 0\n" +
			"== Numa Nodes ==\nGPU[1] : (Topology) Numa Affinity: 0\nGPU[2] : (Topology) Numa Affinity: 1\n",
		": gpu0@- gpu1@numa0 gpu2@numa1 0-1 0-2", "2 cells of the link types name no type",
	},
	{
		"amd-smi: addresses",
		"ACCESS TABLE:\n             0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 ENABLED      ENABLED\n0000:22:00.0 DISABLED   " +
			"  ENABLED\nWEIGHT TABLE:\n             0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 0            15\n0000:22:00.0 15  " +
			"         0\n" +
			"HOPS TABLE:\n             0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 0            1\n0000:22:00.0 1            0\n" +
			"LINK TYPE TABLE:\n             0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 SELF         XGMI\n0000:22:00.0 XGMI      " +
			"   SELF\n" +
			"NUMA BW TABLE:\n             0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 N/A          50000-100000\n0000:22:00.0 " +
			"50000-100000 N/A\nATOMICS TABLE:\n             0000:0c:00.0 0000:22:00.0\n0000:0c:00.0 SELF         64,32\n" +
			"0000:22:00.0 64,32        SELF\n\nLegend:\n  SELF = Current GPU\n",
		": gpu0@- gpu1@- 0-1", "",
	},
	{
		"pdsh mixes hosts",
		"n1: == Link Type between two GPUs ==\nn2: == Link Type between two GPUs ==\nn1: GPU0 GPU1\nn2: GPU0 GPU1\nn1: " +
			"GPU0 0 XGMI\nn2: GPU0 0 PCIE\nn2: GPU1 PCIE 0\nn1: GPU1 XGMI 0\n",
		"n1: gpu0@- gpu1@- 0-1|n2: gpu0@- gpu1@-", "",
	},
	{
		"two machines without names",
		"== Link Type between two GPUs ==\nGPU0 GPU1\nGPU0 0 XGMI\nGPU1 XGMI 0\n== Link Type between two GPUs ==\nGPU0 " +
			"GPU1\nGPU0 0 PCIE\nGPU1 PCIE 0\n",
		": gpu0@- gpu1@- 0-1|: gpu0@- gpu1@-", "",
	},
	{
		"cut off, short row, strange row",
		"== Link Type between two GPUs ==\n GPU0 GPU1 GPU2\nGPU0 0 XGMI XGMI\nGPU7 0 0 0\nGPU1 XGMI\n",
		": gpu0@- gpu1@- gpu2@- 0-1 0-2", "row GPU7 has no column|row GPU1 has 1 cells|no row for GPU2",
	},
	{
		"a part of a GPU of one",
		"============================ ROCm System Management Interface ============================\n" +
			"=============================== Link Type between two GPUs ===============================\n       GPU0         " +
			"\nGPU0   0            \n",
		": gpu0@-", "",
	},
}

func TestLayouts(t *testing.T) {
	for _, c := range layouts {
		t.Run(c.name, func(t *testing.T) {
			if !Match([]byte(c.in)) {
				t.Error("not recognised")
			}
			f, err := Read("in", strings.NewReader(c.in))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, h := range f.Hosts {
				got = append(got, h.Name+": "+sketch(f.Types[h.Type]))
			}
			if s := strings.Join(got, "|"); s != c.want {
				t.Errorf("got\n%s\nwant\n%s", s, c.want)
			}
			checkWarnings(t, f.Warnings, c.warn)
			if m := f.Types[0].Matrix(); strings.Contains(c.in, "XXXX") && m.Class[1][2] != "?" {
				t.Errorf("the pair of no known type is %s", m.Class[1][2])
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, in := range []string{
		"", "Link Type between two GPUs\n", "GPU0 GPU1\nGPU0 0 1\n", "\x00\xff",
		"GPU[1]\t\t: (Topology) Numa Node: 1\n",
	} {
		if _, err := Read("in", strings.NewReader(in)); err == nil ||
			!strings.HasPrefix(err.Error(), "in: no topology found; expected") {
			t.Errorf("%q: error %v", in, err)
		}
	}
}

func FuzzRead(f *testing.F) {
	var seeds []string
	for _, c := range layouts {
		seeds = append(seeds, c.in)
	}
	readertest.Reader{Match: Match, Read: Read}.Fuzz(f, nil, seeds...)
}
