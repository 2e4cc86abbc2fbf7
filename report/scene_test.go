package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/internal/svg"
)

// walk calls a function for every mark of a scene.
func walk(list []svg.Mark, f func(*svg.Mark)) {
	for i := range list {
		f(&list[i])
		walk(list[i].Marks, f)
	}
}

func drawScene(t *testing.T, s *Scene) []byte {
	t.Helper()
	var pic bytes.Buffer
	if err := s.SVG(&pic); err != nil {
		t.Fatal(err)
	}
	return pic.Bytes()
}

// checkScene holds a scene for a page to what its page relies on: a key stands for one thing, every node and every
// switch is there once, every colour has a name.
func checkScene(t *testing.T, name string, c *cluster.Cluster, s *Scene) {
	t.Helper()
	checkPicture(t, name, drawScene(t, s))
	keys, nodes := make(map[string]bool), 0
	switches := make(map[string]int)
	color := func(what string) {
		if _, ok := svg.Colors[what]; what != "" && !ok {
			t.Errorf("%s: the colour %q has no name", name, what)
		}
	}
	walk(s.Marks, func(m *svg.Mark) {
		if m.Key != "" {
			if keys[m.Key] {
				t.Errorf("%s: %s is drawn twice", name, m.Key)
			}
			keys[m.Key] = true
		}
		if m.Paint != nil {
			color(m.Paint.Fill)
			color(m.Paint.Stroke)
		}
		if m.Type != nil {
			color(m.Type.Fill)
		}
		switch what, _, _ := strings.Cut(m.Key, "/"); {
		case what == "node":
			nodes++
		case what == "switch" && len(m.Names) == 0:
			switches[strings.TrimPrefix(m.Key, "switch/")]++
		case what == "switch":
			for _, n := range m.Names {
				switches[n]++
			}
		case m.Is == svg.Grid && m.Cells.What == "node":
			nodes += m.Cells.N
			if list, err := cluster.ParseHosts(m.Cells.Hosts); err != nil || len(list) != m.Cells.N {
				t.Errorf("%s: %d cells for %s, %v", name, m.Cells.N, m.Cells.Hosts, err)
			}
		case m.Is == svg.Grid:
			for _, n := range m.Cells.Names {
				switches[n]++
			}
		}
	})
	if nodes != len(c.Hosts) {
		t.Errorf("%s: %d nodes are drawn, of %d", name, nodes, len(c.Hosts))
	}
	for _, sw := range c.Network.Switches {
		if switches[sw.Name] == 0 && !sw.Domain {
			t.Errorf("%s: switch %s is not drawn", name, sw.Name)
		}
	}
	grouped := 0
	for _, g := range s.Groups {
		list, err := cluster.ParseHosts(g.Hosts)
		if err != nil {
			t.Errorf("%s: group %s: %v", name, g.ID, err)
		}
		grouped += len(list)
	}
	if grouped != len(c.Hosts) {
		t.Errorf("%s: groups hold %d nodes, of %d", name, grouped, len(c.Hosts))
	}
}

func TestScene(t *testing.T) {
	for name, c := range shown() {
		if len(c.Hosts) > 1 {
			checkScene(t, name, c, NewScene(c))
		}
		for h := range c.Hosts {
			if c.TypeOf(h) == nil || h > 4 {
				continue
			}
			if got := checkPicture(t, name, drawScene(t, NodeScene(c, h))); got["gpu"] != c.TypeOf(h).Count(cluster.GPU) {
				t.Errorf("%s: node %d shows %d GPUs", name, h, got["gpu"])
			}
		}
	}
}

func TestSceneOfEveryPreset(t *testing.T) {
	for i, p := range hardware.Presets() {
		counts := []int{3, 40, 700}
		if i%6 > 0 {
			counts = counts[:2] // large ones differ in nothing but the form of cells
		}
		if p.GPUs == 1 {
			continue
		}
		for _, n := range counts {
			c, err := hardware.Preset(p.Name, n)
			if err != nil {
				t.Fatal(err)
			}
			checkScene(t, fmt.Sprintf("%s:%d", p.Name, n), c, NewScene(c))
		}
	}
}

// TestSceneOfOneNode is the node itself, every part of which can be chosen.
func TestSceneOfOneNode(t *testing.T) {
	c := alone(dgxH100(), 1)
	s := NewScene(c)
	keys := make(map[string]bool)
	walk(s.Marks, func(m *svg.Mark) { keys[m.Key] = true })
	host := c.Hosts[0].Name
	for _, d := range c.Types[0].Devices {
		if key := "device/" + host + "/" + d.Name; !keys[key] {
			t.Errorf("%s cannot be chosen", key)
		}
	}
	for i, l := range c.Types[0].Links {
		if key := fmt.Sprintf("link/%s/%d", host, i); !keys[key] && l.Kind != cluster.OnDie {
			t.Errorf("%s (%s) cannot be chosen", key, l.Kind)
		}
	}
}

// TestLargeSceneStaysShort holds equal nodes to types and counts.
func TestLargeSceneStaysShort(t *testing.T) {
	c, err := hardware.Preset("dgx-h100", 16384)
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(NewScene(c))
	if err != nil {
		t.Fatal(err)
	}
	if len(data) > 800<<10 {
		t.Errorf("the scene of 16384 nodes in 512 groups has %d bytes", len(data))
	}
	c, err = hardware.Preset("dgx-h100", 1000)
	if err != nil {
		t.Fatal(err)
	}
	if data, _ = json.Marshal(NewScene(c)); len(data) > 80<<10 {
		t.Errorf("the scene of 1000 nodes has %d bytes", len(data))
	}
}

func BenchmarkScene(b *testing.B) {
	for _, n := range []int{4, 1000, 16384} {
		c, err := hardware.Preset("dgx-h100", n)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			for b.Loop() {
				if err := json.NewEncoder(io.Discard).Encode(NewScene(c)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
