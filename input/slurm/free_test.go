package slurm

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/cluster"
)

// States come from scontrol show node, also of one line each, and from sinfo; reasons of several words are kept whole.
func TestNodeStates(t *testing.T) {
	for in, want := range map[string]string{
		"NodeName=n1 CPUTot=8\n   State=IDLE+DRAIN ThreadsPerCore=2\n   \n   Reason=XID 79 GPU fallen off the bus " +
			"[root@2026-11-15T03:12:44]\n\nNodeName=n2 CPUTot=8\n   State=IDLE\n": "n1 drained (XID 79 GPU fallen off the bus " +
			"[root@2026-11-15T03:12:44]); n2 free",
		"NodeName=n1 CPUTot=8 State=MIXED+DRAIN Reason=fan noise [ops@2026-11-15T03:12:44] Comment=x\nNodeName=n2 CPUTot=8 " +
			"State=DOWN+DRAIN+NOT_RESPONDING\n": "n1 draining (fan noise [ops@2026-11-15T03:12:44]); n2 down, drained, not " +
			"responding",
		"NODELIST NODES STATE REASON\nn1 1 drained XID 79 GPU\nn2 1 idle none\nn3 1 down* Not responding\nn4 1 maint none\n": "n1 drained (XID 79 GPU); n2 free; n3 down, not responding (Not responding); n4 in maintenance",
		"PARTITION AVAIL TIMELIMIT NODES STATE NODELIST\na up 1:00 2 drng n[1-2]\nb up 1:00 1 idle~ n3\nc up 1:00 1 resv " +
			"n4\nd up 1:00 1 unk n5\ne up 1:00 1 mix n6\n": "n1 draining; n2 draining; n3 free; n4; n5; n6",
		"gpu*  up  infinite  2  inval n[1-2]\ncpu   up 1-00:00:00   1 drain* n3\nb down 30:00 1 idle n4\n": "n1 invalid; n2 invalid; " +
			"n3 drained, not responding; n4 free",
		"PARTITION STATE NODELIST\na maint n1\nb idle n1\n": "n1 free",
	} {
		states, ok, err := NodeStates(cluster.NewBudget(cluster.Limits{}, nil), in)
		if !ok || err != nil {
			t.Fatal(ok, err)
		}
		var got []string
		for _, s := range states {
			text := s.Name
			if s.Free {
				text += " free"
			}
			if s.Out != nil {
				text += " " + s.Out.State
				if s.Out.Reason != "" {
					text += " (" + s.Out.Reason + ")"
				}
			}
			got = append(got, text)
		}
		if text := strings.Join(got, "; "); text != want {
			t.Errorf("%s\ngot  %s\nwant %s", in, text, want)
		}
	}
}

// ReadNodes keeps them on the hosts; UNKNOWN of slurm.conf says nothing.
func TestNodesOutOfService(t *testing.T) {
	f, err := ReadNodes("x", strings.NewReader("NodeName=n1 Gres=gpu:8\n   State=DOWN*\n   Reason=power supply\n"+
		"NodeName=n[2-3] Gres=gpu:8 State=UNKNOWN\n"))
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, h := range f.Hosts {
		got += fmt.Sprintf("%s %v;", h.Name, h.Out != nil && h.Out.State != "")
	}
	if got != "n1 true;n2 false;n3 false;" ||
		*f.Hosts[0].Out != (cluster.Out{State: "down, not responding", Reason: "power supply"}) {
		t.Errorf("%s %v", got, f.Hosts[0].Out)
	}
	c := cluster.Join(&cluster.Fragment{Cluster: cluster.Cluster{Hosts: []cluster.Host{{Name: "n1", Type: -1}}}}, f)
	if c.Hosts[0].Out == nil {
		t.Error("a join with another source drops the state")
	}
}
