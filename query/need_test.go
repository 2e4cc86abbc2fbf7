package query

import (
	"slices"
	"strings"
	"testing"
)

// TestNeedFasterNIC checks that a faster NIC is nowhere said to be slower without the setting that avoids it. With
// kernel sockets NCCL changes from trees to rings between 50 and 100 Gb/s; with eight NICs it sets up fewer channels.
func TestNeedFasterNIC(t *testing.T) {
	for _, nic := range []string{"25GbE", "100GbE", "8xHDR"} {
		d, err := Need{Job: Job{
			Cluster: "4xa6000:2", NIC: nic, Model: "gpt2-large", Framework: "ddp", Parallel: "zero=0",
			Seq: 1024, Micro: 4, Global: 32,
		}}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(nic, err)
		}
		slower := 0
		for i := 1; i < len(d.Rates); i++ {
			was, is := d.Rates[i-1], d.Rates[i]
			if is.Setting == "" && is.Best != is.Step || is.Setting != "" && is.Best >= is.Step {
				t.Errorf("%s: %s: step %v, with %q %v", nic, is.What, is.Step, is.Setting, is.Best)
			}
			avoided := "With " + is.Setting + " it would be " + is.Best.Short() + "."
			if is.Setting == "" {
				avoided = "NCCL_ALGO does not avoid it."
			}
			if float64(is.Step) > 1.01*float64(was.Step) {
				if slower++; !strings.HasPrefix(d.Slower, is.What+" instead of "+was.What) ||
					!strings.HasSuffix(d.Slower, avoided) {
					t.Errorf("%s: %s takes %v, %s %v; said is %q", nic, was.What, was.Step, is.What, is.Step, d.Slower)
				}
			}
			if nic != "8xHDR" && float64(is.Best) > 1.01*float64(was.Best) {
				t.Errorf("%s: %s takes %v at best, %s %v", nic, is.What, is.Best, was.What, was.Best)
			}
		}
		if slower != 1 {
			t.Errorf("%s: a faster NIC is slower %d times, expected once: else the test shows nothing", nic, slower)
		}
		if r := d.Now; !(r.Low < r.Step && r.Step < r.High) || d.MarginFrom == "" {
			t.Errorf("%s: %v is said to be between %v and %v (%s)", nic, r.Step, r.Low, r.High, d.MarginFrom)
		}
	}
}

// TestNeedSockets checks that where kernel sockets limit the step, RDMA is among the upgrades, and its gain is that of
// such NICs.
func TestNeedSockets(t *testing.T) {
	ask := func(nic string) *NeedDoc {
		d, err := Need{Job: Job{
			Cluster: "4xa6000:2", NIC: nic, Model: "gpt2-large", Framework: "ddp", Parallel: "zero=0",
			Seq: 1024, Micro: 4, Global: 32,
		}}.Run(t.Context(), Env{})
		if err != nil {
			t.Fatal(nic, err)
		}
		return d
	}
	d, rdma := ask("100GbE"), ask("100Gb/s RoCE")
	i := slices.IndexFunc(d.Upgrades, func(u NeedRow) bool { return u.What == "RDMA (RoCE) instead of kernel sockets" })
	u := d.Upgrades[max(i, 0)]
	if i < 0 || u.Best != rdma.Now.Best || u.Gain < 0.1 {
		t.Errorf("the upgrade to RDMA is %s, %v; RoCE of the same rate takes %v", u.What, u.Best, rdma.Now.Best)
	}
	if want := "Its limit is then: the PCIe link carries 31.5 GB/s"; !strings.Contains(rdma.Text, want) {
		t.Errorf("the text lacks %q: %s", want, rdma.Text)
	}
}

// TestNeedPurchases checks that twice the NICs and faster NICs with RDMA are among the upgrades, at what the same
// question about them says, and that what costs nothing is said first.
func TestNeedPurchases(t *testing.T) {
	job := Job{Cluster: "4x4090:2", NIC: "25GbE", Model: "gpt2-large", Framework: "ddp", Micro: 2, Global: 16}
	d, err := Need{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	job.NIC = "2x25GbE"
	two, err := Step{Job: job}.Run(t.Context(), Env{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]bool{}
	for _, u := range d.Upgrades {
		found[u.What] = true
		if strings.HasPrefix(u.What, "twice the NICs") && u.Step != two.Rows[0].Step {
			t.Errorf("%s takes %v, with --nic 2x25GbE %v", u.What, u.Step, two.Rows[0].Step)
		}
	}
	for _, want := range []string{
		"twice the NICs (--nic 2x25GbE)", "RDMA (RoCE), NICs and cables of 50 Gb/s",
		"RDMA (RoCE), NICs and cables of 100 Gb/s",
	} {
		if !found[want] {
			t.Errorf("the upgrades lack %q", want)
		}
	}
	if !strings.HasPrefix(d.Text, "--compress bf16 costs nothing: ") ||
		!strings.Contains(d.Text, "NCCL_NSOCKS_PERTHREAD=4") || strings.Contains(d.Slower, "makes the step slower") {
		t.Errorf("said is: %s %s", d.Slower, d.Text)
	}
}
