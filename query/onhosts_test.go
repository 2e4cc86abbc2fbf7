package query

import (
	"fmt"
	"strings"
	"testing"
)

// TestOnHosts checks that layouts are on the hosts that were named, in their order, and that names which cannot be are
// refused.
func TestOnHosts(t *testing.T) {
	cl, err := LoadCluster(t.Context(), Env{}, "dgx-h100:4")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		hosts       string
		nodes, gpus int
		want        string // hosts of the ranks, and the layout's name; or the error
	}{
		{"node[3,1]", 0, 0, "[3 1] 2x8"},
		{"NODE2.example", 0, 0, "[2] 1x8"},
		{"node[3,1]", 2, 4, "[3 1] 2x4"},
		{"node[3,1]", 1, 4, "[3] 1x4"},
		{"node[3,1]", 3, 8, "--hosts names 2 hosts; the layout 3x8 has 3 nodes"},
		{"node[1,1]", 0, 0, "node1 is named twice"},
		{"node[1,7]", 0, 0, "node7 is no host of dgx-h100, which has node[0-3]"},
		{"node[1", 0, 0, "--hosts: "},
		{"node1", 1, 9, "node1 has 8 GPUs; expected at least 9"},
	} {
		shapes := []shape{{text: fmt.Sprintf("%dx%d", c.nodes, c.gpus), nodes: c.nodes, gpus: c.gpus}}
		err := onHosts(c.hosts, shapes)
		got := ""
		if err == nil {
			l, name, failed := shapes[0].ranks(cl)
			var hosts []int
			for i, r := range l {
				if i == 0 || l[i-1].Host != r.Host {
					hosts = append(hosts, r.Host)
				}
			}
			got, err = fmt.Sprint(hosts, " ", name), failed
		}
		if err != nil {
			got = err.Error()
		}
		if !strings.Contains(got, c.want) {
			t.Errorf("--hosts %s on %dx%d: %s; want %s", c.hosts, c.nodes, c.gpus, got, c.want)
		}
	}
}

// TestHostsAsked checks that predict, step and need ask about the hosts that were named.
func TestHostsAsked(t *testing.T) {
	const on = "node[3,1]"
	p, err := Predict{Cluster: "dgx-h100:4", Size: "1M", Hosts: on}.Run(t.Context(), Env{})
	if err != nil || p.Rows[0].Layout != "2x8" {
		t.Errorf("predict: %+v, %v", p, err)
	}
	job := Job{Cluster: "dgx-h100:4", Model: "gpt2"}
	s, err := Step{Job: job, Hosts: on}.Run(t.Context(), Env{})
	if err != nil || s.Rows[0].Layout != "2x8" {
		t.Errorf("step: %+v, %v", s, err)
	}
	n, err := Need{Job: job, Hosts: on}.Run(t.Context(), Env{})
	if err != nil || n.Layout != "2x8" || n.Now.Step != s.Rows[0].Step {
		t.Errorf("need: %+v, %v", n, err)
	}
}
