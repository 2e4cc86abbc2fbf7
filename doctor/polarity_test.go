package doctor

import (
	"slices"
	"strings"
	"testing"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/doctor/told"
	"busbar.dev/finding"
)

// say examines a sentence.
func say(t *testing.T, text string) *Report {
	t.Helper()
	r := vocabulary().NewReader()
	if err := r.ReadSentence(text); err != nil {
		t.Fatal(err)
	}
	set, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	return Examine(set)
}

// confidenceOf is how sure a report is of a finding.
func confidenceOf(r *Report, id string) float64 {
	for _, f := range r.Findings {
		if f.ID == id {
			return f.Confidence
		}
	}
	return 0
}

// With too little evidence the answer is: unknown, and what to find out.
func TestUnknown(t *testing.T) {
	for _, text := range []string{
		"training hangs", "it is slow", "my job crashes", "NCCL error on two nodes", "still hangs with NCCL_P2P_DISABLE=1",
		"training is stuck",
	} {
		r := say(t, text)
		if !r.Undecided || len(r.Findings) < leading || !r.Wrong(finding.Warn) {
			t.Errorf("%q: undecided %v, %v %.2f", text, r.Undecided, ids(r), r.Findings[0].Confidence)
		}
		for _, f := range r.Findings[:leading] {
			if f.Confirm == "" || f.Severity != finding.Note {
				t.Errorf("%q: %+v", text, f)
			}
		}
		if out := textOf(t, r); strings.Count(out, "\n") > answerLines || strings.Count(out, "run: ") != leading {
			t.Errorf("%q: %s", text, out)
		}
	}
}

// What is stated to be in order, or was tried in vain, is not named as the fault.
func TestNotTheFault(t *testing.T) {
	for _, c := range []struct{ text, not string }{
		{"training hangs, ACS is disabled, iommu=pt is set", "acs"},
		{"training hangs, ACS is disabled, iommu=pt is set", "iommu"},
		{"still hangs with NCCL_P2P_DISABLE=1", "iommu"},
		{"all-reduce is slow; nvidia-peermem is loaded", "gdr-off"},
		{"two nodes hang at init; the firewall is off on both", "connect-failed"},
		{"the job crashes; ulimit -l is unlimited", "memlock"},
		{"RoCE is slow, no packet loss and all discards are zero", "roce-loss"},
		{"jobs time out; MTU is the same everywhere", "mtu-mismatch"},
		{"the pod crashes; /dev/shm is large enough", "shm-too-small"},
		{"NVSwitch server fails; the fabric manager is running", "fabric-manager"},
		{"a node is slow, temperatures and clocks are normal", "gpu-throttled"},
	} {
		if p := confidenceOf(say(t, c.text), c.not); p >= 0.1 {
			t.Errorf("%q: %s with %.2f", c.text, c.not, p)
		}
	}
}

// A message that a sentence denies, or says to be past, never raises what the message would.
func TestDeniedMessages(t *testing.T) {
	before := say(t, "training is slow")
	for i, message := range []string{
		"Xid 79", "Xid 48", "CUDA out of memory", "OOM", "IB link down", "GPU fallen off the bus", "uncorrectable ECC errors",
		"illegal memory access", "segmentation fault", "unhandled system error",
	} {
		if testing.Short() && i%3 > 0 {
			continue
		}
		raised := map[string]float64{}
		for _, f := range say(t, "training is slow, "+message).Findings {
			if f.Confidence >= 0.1 {
				raised[f.ID] = f.Confidence
			}
		}
		for _, how := range []string{
			"no %", "never saw %", "there is no %", "% was fixed", "we never saw %",
			"% was fixed last week by replacing the GPU", "we do not see any %", "% never happened",
		} {
			text := "training is slow, " + strings.ReplaceAll(how, "%", message)
			for _, f := range say(t, text).Findings {
				if raised[f.ID] > 0 && f.Confidence > confidenceOf(before, f.ID)+0.1 {
					t.Errorf("%q: %s with %.2f, %.2f without the message", text, f.ID, f.Confidence, confidenceOf(before, f.ID))
				}
			}
		}
	}
	for _, c := range []struct{ text, not string }{
		{"no Xid 79", "gpu-fault"},
		{"there is no Xid 79 and GPU did not fall off the bus", "gpu-fell-off"},
		{"Xid 79 was fixed last week by replacing the GPU; now only slow at 3 nodes", "gpu-fault"},
		{"we never saw CUDA out of memory", "out-of-memory"},
		{"IB link is HDR 200 and not down; nccl timeout only at checkpoint", "bad-link"},
	} {
		if p := confidenceOf(say(t, c.text), c.not); p >= 0.15 {
			t.Errorf("%q: %s with %.2f", c.text, c.not, p)
		}
	}
}

// Other languages are refused rather than weighed as English.
func TestNotEnglish(t *testing.T) {
	for text, ok := range map[string]bool{
		"das training bleibt beim zweiten knoten haengen": false, "la formation est bloquée sur deux noeuds": false,
		"训练 在两个节点上卡住":                                 false,
		"el entrenamiento se cuelga en los dos nodos": false, "training hangs on two nodes": true,
		"ranks die, NCCL timeout": true, "µs per step": true, "we train on La Palma, the loss is NaN": true,
	} {
		if err := vocabulary().NewReader().ReadSentence(text); (err == nil) != ok {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A remedy tried without effect never makes its cause likelier, whatever was told before.
func TestNoEffectNeverRaises(t *testing.T) {
	m, err := model()
	if err != nil {
		t.Fatal(err)
	}
	weigh := func(text string) map[string]cause.Hypothesis {
		of := map[string]cause.Hypothesis{}
		for _, h := range m.Weigh(&cause.Case{Told: told.Read(text, evidence.Sentence)}) {
			if h.Cause != nil {
				of[h.ID] = h
			}
		}
		return of
	}
	for _, base := range []string{
		"training hangs on two nodes with InfiniBand", "all-reduce is slow on 8 GPUs without NVLink",
		"the container crashes with unhandled system error",
		"RoCE connections time out", "the job dies with an error after 30 minutes", "wrong results between two nodes",
	} {
		before := weigh(base)
		for _, remedy := range []string{
			"NCCL_P2P_DISABLE=1", "NCCL_IB_GID_INDEX=3", "NCCL_SOCKET_IFNAME=eth0", "--shm-size=16g", "ulimit -l unlimited",
			"NCCL_NVLS_ENABLE=0", "a longer timeout",
			"another cable", "NCCL_CUMEM_ENABLE=0", "iommu=pt", "setpci to clear ACS", "reverting to the previous release",
			"NCCL_ALGO=Ring", "find_unused_parameters=True", "num_workers=0",
		} {
			for _, how := range []string{
				remedy + ": tried without effect", remedy + " does not help", "still the same with " + remedy,
				remedy + " makes no difference",
			} {
				after := weigh(base + ". " + how)
				for id, h := range after {
					if h.Tried == cause.InVain && h.P > before[id].P+1e-9 {
						t.Errorf("%q, %q: %s rises from %.4f to %.4f", base, how, id, before[id].P, h.P)
					}
				}
			}
		}
	}
}

// The symptoms of the source documents, in their words: the cause is among the first two.
func TestSourceSymptoms(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"all_reduce drops at three nodes, two nodes are fine", "fabric"},
		{"rates change with the time of day", "other-traffic"},
		{"one node is slower, its optical link shows CRC errors", "bad-link"},
		{"the NIC hangs off the other CPU socket and bandwidth is half", "numa"},
		{"ranks wait for a node whose GPU clocks are throttled", "gpu-throttled"},
		{"bandwidth is low because InfiniBand is not used and NCCL falls back to sockets", "socket-fallback"},
		{"tensor parallelism works poorly across nodes", "cross-node-tp"},
		{"pipeline training has huge idle bubbles", "pipeline-placement"},
		{"all-reduce time scales linearly with world size", "linear-growth"},
		{"checkpoints and logging share the same network with training and step time jitters", "other-traffic"},
		{"GPU utilisation is low because the data loader is slow", "data-slow"},
		{"MTU differs between hosts and large messages hang", "mtu-mismatch"},
		{"GPUDirect RDMA is disabled and the rate is half", "gdr-off"},
		{"switch uplinks are oversubscribed 4:1 and all-reduce across racks is slow", "fabric"},
	} {
		got := ids(say(t, c.text))
		if !slices.Contains(got[:min(2, len(got))], c.want) {
			t.Errorf("%q: %s, want %s", c.text, strings.Join(got, " "), c.want)
		}
	}
}

// A cause never stands above one of the same severity that is more than four times as likely.
func TestLikelierFirst(t *testing.T) {
	for _, text := range []string{
		"ACS is enabled, ACS is disabled, ACS is on", "training hangs", "busbw is 400 GB/h and wire 392 PB/s",
		"all_reduce drops at three nodes",
	} {
		last := 1.0
		for _, f := range say(t, text).Findings {
			if m, _ := model(); m.Consequence(f.ID) || f.ExplainedBy != "" || f.Severity != finding.Warn {
				continue
			}
			if f.Confidence > 4*last {
				t.Errorf("%q: %s with %.2f stands below %.2f", text, f.ID, f.Confidence, last)
			}
			last = f.Confidence
		}
	}
}
