package report

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
)

var update = flag.Bool("update", false, "rewrite the files under testdata")

// golden compares with a file under testdata, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs; run go test ./report -update and look at the difference\ngot:\n%s", file, got)
	}
}

// sick is a cluster with something to say about everything: a link trained low, a
// NIC port that is down, measured pairs with an outlier, refused peer access, a
// second kind of node, hosts nobody described, a slow cable, collectives and notes.
func sick() *cluster.Cluster {
	t := dgxH100()
	t.Name = "big"
	for i := range t.Links {
		l := &t.Links[i]
		switch {
		case l.Kind == cluster.PCIe && l.B == t.ByName("gpu2"):
			l.Lanes, l.Rate.Value = 8, l.Rate.Value/2
		case l.Kind == cluster.PCIe && l.B == t.ByName("nic5"):
			l.GTs, l.Rate.Value = 16, l.Rate.Value/2
		}
	}
	t.Devices[t.ByName("nic7")].NIC.Ports[0].State = cluster.Down
	t.Devices[t.ByName("nic6")].NIC.Ports[0].Max = spec(800 * unit.Gbps)
	t.Devices[t.ByName("gpu1")].GPU.Slices = []cluster.Slice{{Index: 0, Profile: "3g.40gb"}}
	gpus := t.Of(cluster.GPU)
	for i, a := range gpus {
		for j, b := range gpus {
			if a == b {
				continue
			}
			rate := unit.Rate(390+i+j) * unit.GBps
			if i == 3 && j == 5 {
				rate /= 4
			}
			t.Pairs = append(t.Pairs, cluster.Pair{
				A: a, B: b, Rate: cluster.FromMeasured(rate, "nvbandwidth"),
				Latency: cluster.FromMeasured(unit.Micros(2+float64(i)/10), "nvbandwidth"), P2P: cluster.Bool(i != 0 || j != 7),
				Why: "CNS",
			})
		}
	}
	small := baskerville()
	small.Tree = cluster.Assumed
	c := railed(t, 4, 2)
	c.Types = append(c.Types, small)
	for i := range 3 {
		c.Hosts = append(c.Hosts, cluster.Host{Name: fmt.Sprintf("small%d", i), Type: 1})
	}
	c.Hosts = append(c.Hosts, cluster.Host{Name: "login1", Type: -1})
	last := &c.Network.Links[len(c.Network.Links)-1]
	last.Max, last.Rate = last.Rate, spec(100*unit.Gbps)
	last.Counters = map[string]uint64{"A.SymbolErrorCounter": 12, "B.LinkDownedCounter": 3}
	c.Network.Oversubscription = cluster.FromAssumed(1.0, "test")
	c.Network.Switches = append(c.Network.Switches, cluster.Switch{
		Name: "block01", Domain: true, Tier: cluster.TierUnknown, Rail: -1,
	})
	c.Sources = []string{"node.xml", "fabric.txt"}
	c.Warnings = []cluster.Warning{{
		Source: "fabric.txt:12", Where: "small0/mlx5_0",
		Text: "ibnetdiscover says 100 Gb/s, ethtool says 200 Gb/s; kept 100 Gb/s, because a cable carries what it is " +
			"trained for and not what it could do",
	}}
	return c
}

// shown are the clusters that the tests print and draw.
func shown() map[string]*cluster.Cluster {
	return map[string]*cluster.Cluster{
		"dgx-h100-16":   railed(dgxH100(), 16, 4),
		"dgx-h100-2":    railed(dgxH100(), 2, 0),
		"baskerville-2": flat(baskerville(), 2),
		"dgx-1v":        alone(dgx1v(), 1),
		"gb200-nvl72":   alone(nvl72(), 1),
		"two-levels":    alone(twoLevels(), 1),
		"nvl72-4":       railed(nvl72(), 4, 1),
		"fabric":        fabric(16, 4, 2),
		"fabric-wide":   fabric(582, 60, 10),
		"no-network":    alone(baskerville(), 2),
		"sick":          sick(),
		"empty":         {},
		"type-only":     {Types: []*cluster.NodeType{dgx1v()}},
	}
}

func TestText(t *testing.T) {
	for name, c := range shown() {
		var plain, color bytes.Buffer
		if err := Text(&plain, c, TextOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := Text(&color, c, TextOptions{Color: true}); err != nil {
			t.Fatal(err)
		}
		if got := texttab.Strip(color.String()); got != plain.String() {
			t.Errorf("%s: with its colours taken out, the coloured text differs:\n%s", name, got)
		}
		if name != "fabric-wide" && name != "nvl72-4" {
			golden(t, name+".txt", plain.Bytes())
		}
	}
}

func TestTextKeepsToItsWidth(t *testing.T) {
	for name, c := range shown() {
		if name == "nvl72-4" {
			continue // as gb200-nvl72
		}
		for _, width := range []int{60, 120} {
			var b bytes.Buffer
			if err := Text(&b, c, TextOptions{Width: width}); err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(b.String()) {
				line = strings.TrimRight(line, "\n")
				// Tables and words that cannot be broken may stick out.
				wide := texttab.Width(line) > width
				if wide && !strings.Contains(line, "   ") && strings.Count(line, " ") > 12 && strings.Contains(line, " · ") {
					t.Errorf("%s at %d: %d wide: %s", name, width, texttab.Width(line), line)
				}
			}
		}
	}
}

// TestLargeClusterStaysShort holds the text and the picture of ten thousand nodes
// of two types to the size of a small one.
func TestLargeClusterStaysShort(t *testing.T) {
	c := railed(dgxH100(), 10000, 16)
	c.Types = append(c.Types, baskerville())
	for i := range c.Hosts {
		if i%2 == 1 {
			c.Hosts[i].Type = 1
		}
	}
	start := time.Now()
	var text, pic bytes.Buffer
	for _, err := range []error{Text(&text, c, TextOptions{}), Drawing(c).SVG(&pic)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	// A fifth of a second on an idle machine; the limit is for loops within loops.
	if took := time.Since(start); took > 30*time.Second {
		t.Errorf("took %v", took)
	}
	if n := strings.Count(text.String(), "\n"); n > 140 {
		t.Errorf("the text has %d lines:\n%s", n, text.String())
	}
	if pic.Len() > 300_000 { // a cell has some twenty bytes
		t.Errorf("the picture has %d bytes", pic.Len())
	}
}

func TestManySwitchesAreCounted(t *testing.T) {
	c := fabric(640, 80, 10)
	for i := range c.Network.Switches {
		c.Network.Switches[i].Model = fmt.Sprint("model", i) // none is like another
	}
	var b bytes.Buffer
	if err := Text(&b, c, TextOptions{}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(b.String(), "… and 50 more") {
		t.Errorf("no count of the switches that are not listed in\n%s", b.String())
	}
}

func TestSameEveryTime(t *testing.T) {
	for name, c := range shown() {
		for what, show := range map[string]func(io.Writer, *cluster.Cluster) error{"svg": asSVG, "matrix": Matrix} {
			var a, b bytes.Buffer
			if err := show(&a, c); err != nil {
				t.Fatal(err)
			}
			if err := show(&b, c); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(a.Bytes(), b.Bytes()) {
				t.Errorf("%s as %s differs from one time to the next", name, what)
			}
		}
	}
}

func TestFindings(t *testing.T) {
	fs := []finding.Finding{
		{ID: "link-down", Severity: finding.Error, Where: "leaf2[33]", Text: "the link is down", Fix: "reseat the cable"},
		{
			ID: "nic-shared", Severity: finding.Warn, Where: "node[0-1]/mlx5_0",
			Text: "4 GPUs (gpu0, gpu1, gpu2, gpu3) share one NIC: 6.25 GB/s each when all send, of 25 GB/s; whatever leaves " +
				"the node from any of them goes through it",
			Fix: "place jobs on whole nodes or on one GPU per node, prefer trees to rings across nodes " +
				"(NCCL_ALGO=allreduce:tree; before 2.24 NCCL_ALGO=Tree), or add NICs",
		},
		{ID: "nic-far", Severity: finding.Note, Where: "node0", Text: "worth knowing"},
	}
	var b bytes.Buffer
	if err := Print(&b, TextOptions{Width: 80}, Findings, fs); err != nil {
		t.Fatal(err)
	}
	if err := Print(&b, TextOptions{}, Findings, nil); err != nil {
		t.Fatal(err)
	}
	golden(t, "findings.txt", b.Bytes())
	var color bytes.Buffer
	if err := Print(&color, TextOptions{Width: 80, Color: true}, Findings, fs); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(b.String(), texttab.Strip(color.String())) {
		t.Error("colours change the text")
	}
}

func TestShortCores(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"", ""},
		{"0-15,128-143", "0-15,128-143"},
		{"0,2,4,6,8,10,12,14,16,18,20", "0-20:2"},
		{"1,2,4,8,16,32,64,128,256,512,1024", "1,2,4,8,16,32,64,128…"},
	} {
		if got := cluster.ShortCores(c.in, 21); got != c.want {
			t.Errorf("cluster.ShortCores(%q) = %q, want %q", c.in, got, c.want)
		}
	}
}

func TestHostList(t *testing.T) {
	names := []string{"alpha", "beta", "gamma", "node1", "node2", "node3", "omega"}
	for width, want := range map[int]string{
		0: "alpha,beta,gamma,node[1-3],omega", 26: "alpha,beta, … and 5 more", 5: "alph…",
	} {
		if got := hostList(names, width); got != want {
			t.Errorf("width %d: %q, want %q", width, got, want)
		}
	}
}
