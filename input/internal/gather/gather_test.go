package gather

import (
	"strings"
	"testing"
)

func TestCut(t *testing.T) {
	for _, c := range []struct{ in, host, rest string }{
		{"node7: GPU0 X", "node7", "GPU0 X"},
		{"  a-1.example.org:\tx", "a-1.example.org", "\tx"},
		{"NIC0: mlx5_0", "", ""},
		{"GPU 0: NVIDIA H100", "", ""},
		{"Legend:", "", ""},
		{"ERROR: GPU[1]", "", ""},
		{"12: x", "", ""},
		{"no colon", "", ""},
		{": x", "", ""},
	} {
		host, rest, ok := Cut(c.in)
		if host != c.host || rest != c.rest || ok != (c.host != "") {
			t.Errorf("Cut(%q) = %q, %q, %v", c.in, host, rest, ok)
		}
	}
}

func TestHeadings(t *testing.T) {
	for _, c := range []struct{ in, want string }{
		{"-----\nnode[1-3] (3)\n-----\n", "node1 node2 node3"},
		{"-------\nnode7\n-------\n", "node7"},
		{"gpu04 | CHANGED | rc=0 >>\n", "gpu04"},
		{"-----\nsome words here 1\n-----\n", ""},
		{"-----\nGPU0\n-----\n", ""},
		{"---\nnode1\n---\n", ""},
		{"-----\nn[1-999999]\n-----\n", ""},
		{"-----\nnode1\n-----\nx\n-----\nnode2\n-----\n", "node2"},
	} {
		var h Headings
		for _, l := range strings.Split(c.in, "\n") {
			h.Line(l)
		}
		if got := strings.Join(h.Hosts(), " "); got != c.want {
			t.Errorf("%q: hosts %q; want %q", c.in, got, c.want)
		}
	}
}

// Lists that stand for very many names are read only so often.
func TestHeadingsBound(t *testing.T) {
	var h Headings
	named := 0
	for range 10_000 {
		h.Line("-----")
		if h.Line("n[1-90000]") {
			named += len(h.next)
		}
		h.Line("-----")
	}
	if named > MaxHosts {
		t.Errorf("%d names", named)
	}
}

func TestPrompt(t *testing.T) {
	for in, want := range map[string]string{
		"[root@node7 ~]# nvidia-smi topo -m": "node7",
		"me@a2:~$ nvidia-smi topo -m":        "a2",
		"[root@node7 ~]# ls":                 "",
		"nvidia-smi topo -m":                 "",
	} {
		if got := Prompt(in, "nvidia-smi"); got != want {
			t.Errorf("Prompt(%q) = %q; want %q", in, got, want)
		}
	}
}
