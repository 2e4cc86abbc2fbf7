package query

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"busbar.dev/result/diff"
)

// ranLog is the log of an all-reduce of nccl-tests on nodes with one NIC each, and its table: 1 GiB takes so many µs.
type ranLog struct {
	release      string
	nodes, each  int
	gdr, through string // /GDRDMA or ""; how GPUs of a node talk
	setting      string
	us           float64
}

func (l ranLog) text() string {
	var b strings.Builder
	ranks := l.nodes * l.each
	line := func(rank int, format string, args ...any) {
		fmt.Fprintf(&b, "n%d:%d:%d [%d] NCCL INFO %s\n", rank/l.each, 100+rank, 100+rank, rank%l.each,
			fmt.Sprintf(format, args...))
	}
	fmt.Fprintf(&b, "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 minBytes 1073741824 maxBytes "+
		"1073741824 step: 2(factor) warmup iters: 5 iters: 20 "+
		"agg iters: 1 validation: 1 graph: 0\n#\n# Using devices\n")
	for r := range ranks {
		fmt.Fprintf(&b, "#  Rank %2d Group  0 Pid %6d on n%d device %2d [0x1b] NVIDIA A100-SXM4-80GB\n", r, 100+r, r/l.each,
			r%l.each)
	}
	b.WriteString("#\n")
	line(0, "NCCL version %s+cuda12.4", l.release)
	if l.setting != "" {
		line(0, "%s set by environment to 0.", l.setting)
	}
	for r := range ranks {
		line(r, "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.%d<0>", 1+r/l.each)
		line(r, "ncclCommInitRank comm 0x5%d rank %d nranks %d cudaDev %d nvmlDev %d busId 1b000 commId 0x77 - Init START", r,
			r, ranks, r%l.each, r%l.each)
	}
	line(0, "Channel 00/01 : %s", strings.Join(strings.Fields(strings.Trim(fmt.Sprint(upTo(ranks)), "[]")), "    "))
	for r := range ranks {
		to := (r + 1) % ranks
		via := "via " + l.through
		if r/l.each != to/l.each {
			via = "[send] via NET/IB/0" + l.gdr
			line(to, "Channel 00/0 : %d[%d] -> %d[%d] [receive] via NET/IB/0%s", r, r%l.each, to, to%l.each, l.gdr)
		}
		line(r, "Channel 00/0 : %d[%d] -> %d[%d] %s", r, r%l.each, to, to%l.each, via)
	}
	for r := range ranks {
		line(r, "ncclCommInitRank comm 0x5%d rank %d nranks %d cudaDev %d nvmlDev %d busId 1b000 commId 0x77 - Init COMPLETE",
			r, r, ranks, r%l.each, r%l.each)
	}
	fmt.Fprintf(&b, "#\n#                                                              out-of-place                     "+
		"  "+
		"in-place\n#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   "+
		"busbw #wrong\n#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  "+
		"(GB/s)  (GB/s)\n  1073741824     268435456     float     sum      -1  %.1f   10.00   10.00      0      N/A     "+
		"N/A     N/A    N/A\n# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 10\n", l.us)
	return b.String()
}

func upTo(n int) (list []int) {
	for i := range n {
		list = append(list, i)
	}
	return list
}

// diffOf is the answer about two texts.
func diffOf(t *testing.T, q Diff, old, now string) *DiffDoc {
	t.Helper()
	const two = "nodes: [{hosts: \"n[0-9]\", type: node}]\nnetwork: {nodes_per_leaf: 2, oversubscription: 4}\n" +
		"types: {node: {gpus: 4 x A100-SXM4-80GB, nvlink: mesh, nics: 1 x HDR}}\n"
	env := Env{Files: fstest.MapFS{
		"all_reduce_old.log": {Data: []byte(old)}, "all_reduce_new.log": {Data: []byte(now)}, "two.yaml": {Data: []byte(two)},
	}}
	q.Old, q.New = "all_reduce_old.log", "all_reduce_new.log"
	doc, err := q.Run(t.Context(), env)
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestDiffCauses: what differs is named first, and whether it explains the time.
func TestDiffCauses(t *testing.T) {
	base := ranLog{"2.21.5", 2, 4, "/GDRDMA", "P2P/CUMEM", "", 100000}
	change := func(edit func(*ranLog)) ranLog {
		l := base
		edit(&l)
		return l
	}
	for name, x := range map[string]struct {
		now      ranLog
		what     string // the first difference; "" none
		explains diff.Explains
		found    bool
	}{
		"healthy twice": {change(func(l *ranLog) { l.us = 101000 }), "", "", false},
		"two releases":  {change(func(l *ranLog) { l.release, l.us = "2.27.7", 140000 }), diff.Release, diff.May, true},
		"GPUDirect off": {
			change(func(l *ranLog) { l.gdr, l.setting, l.us = "", "NCCL_NET_GDR_LEVEL", 260000 }), diff.GPUDirect, diff.Yes,
			true,
		},
		"GPUDirect off, and faster": {
			change(func(l *ranLog) { l.gdr, l.us = "", 60000 }), diff.GPUDirect, diff.No, true,
		},
		"far GPUs": {
			change(func(l *ranLog) { l.through, l.us = "SHM/direct/direct", 190000 }), diff.WithinNode, diff.Yes, true,
		},
		"a setting": {
			change(func(l *ranLog) { l.setting, l.us = "NCCL_BUFFSIZE", 150000 }), diff.Setting + "NCCL_BUFFSIZE", "", true,
		},
	} {
		doc := diffOf(t, Diff{}, base.text(), x.now.text())
		var first diff.Difference
		if len(doc.Differences) > 0 {
			first = doc.Differences[0]
		}
		if name == "a setting" { // which the other side does not say
			first = diff.Difference{What: x.what}
		}
		slower := doc.Ratio > 1
		if first.What != x.what || first.Explains != x.explains || (len(doc.Findings) > 0) != x.found ||
			doc.Same != (x.what == "") || x.found && doc.Wrong() != slower {
			t.Errorf("%s: %+v, same %v, wrong %v: %s", name, doc.Differences, doc.Same, doc.Wrong(), doc.Verdict)
		}
	}
}

// TestDiffRacks: the same hosts' number in one rack and across two, as the cluster says where they are.
func TestDiffRacks(t *testing.T) {
	row := func(hosts string, us float64) string {
		var b strings.Builder
		for i := range 6 {
			fmt.Fprintf(&b, `{"busbar_result":2,"source":"measured","op":"all_reduce","redop":"sum","size_bytes":67108864,`+
				`"dtype":"float","ranks":2,"nodes":2,"ranks_per_node":1,"hosts":%q,"algo":"ring","transport":"tcp",`+
				`"time_us":{"mean":%g}}`+"\n", hosts, us+float64(i))
		}
		return b.String()
	}
	doc := diffOf(t, Diff{Cluster: "two.yaml"}, row("n[0-1]", 10000), row("n[1-2]", 14000))
	if len(doc.Differences) == 0 || doc.Differences[0].What != diff.Racks || doc.Differences[0].Explains != diff.Yes ||
		len(doc.Findings) != 1 || !strings.Contains(doc.Findings[0].Text, "uplinks") {
		t.Errorf("%+v %+v: %s", doc.Differences, doc.Findings, doc.Verdict)
	}
	doc = diffOf(t, Diff{Cluster: "two.yaml"}, row("n[0-1]", 10000), row("n[2-3]", 10000))
	if doc.Bad || len(doc.Findings) > 0 {
		t.Errorf("%+v: %s", doc.Findings, doc.Verdict)
	}
}

// TestDiffStaged is the first question of the source documents: four GPUs on two nodes are slower than four on four.
func TestDiffStaged(t *testing.T) {
	four, two := ranLog{"2.21.5", 4, 1, "", "", "", 400000}, ranLog{"2.21.5", 2, 2, "", "P2P/CUMEM", "", 600000}
	doc := diffOf(t, Diff{}, four.text(), two.text())
	text := doc.Verdict + strings.Join(doc.Both, " ")
	if !strings.Contains(text, "host memory") || len(doc.Findings) != 1 || doc.Ratio < 1.4 || doc.Ratio > 1.6 {
		t.Errorf("%+v %s", doc.Differences, text)
	}
	if doc := diffOf(t, Diff{}, two.text(), two.text()); !doc.Same || doc.Wrong() {
		t.Errorf("the same log: %s", doc.Verdict)
	}
}

// TestDiffOf: maps and presets; two things that are not alike are refused.
func TestDiffOf(t *testing.T) {
	doc, err := Diff{Old: "dgx-h100:2", New: "dgx-h200:2"}.Run(t.Context(), Env{Files: fstest.MapFS{}})
	if err != nil || len(doc.Differences) == 0 || doc.Differences[0].What != diff.GPU || doc.Wrong() {
		t.Errorf("%v %+v", err, doc)
	}
	if _, err = (Diff{Old: "dgx-h100:2", New: "x.log"}).Run(t.Context(), Env{Files: fstest.MapFS{
		"x.log": {Data: []byte("n0:1:1 [0] NCCL INFO NCCL version 2.21.5+cuda12.4\n")},
	}}); err == nil || !strings.Contains(err.Error(), "expected two of a kind") {
		t.Error(err)
	}
}

// TestDiffKinds compares two predictions, and maps whose GPUs are near and far.
func TestDiffKinds(t *testing.T) {
	topo := func(class string) string {
		return "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \t" + class + "\t0-15\nGPU1\t" + class + "\t X \t0-15\n"
	}
	prediction := func(layout string, time float64) string {
		return fmt.Sprintf(`{"version":1,"kind":"predict","cluster":"c","op":"all_reduce","nccl":"2.28.9","rows":[{"layout":%q,`+
			`"ranks":4,"size_bytes":1048576,"dtype":"float","algo":"ring","proto":"simple","channels":2,"time_s":%g,`+
			`"chosen":true,"bottleneck":{"kind":"nic","text":"2 GPUs share a port"}}]}`, layout, time)
	}
	for name, x := range map[string]struct {
		old, now, what, slower string
	}{
		"near and far": {topo("NV12"), topo("SYS"), diff.PathOfGPUs, "new"},
		"far and near": {topo("NODE"), topo("PIX"), diff.PathOfGPUs, "old"},
		"layouts":      {prediction("2x2", 0.002), prediction("4x1", 0.001), diff.Nodes, "new"},
	} {
		doc := diffOf(t, Diff{}, x.old, x.now)
		if len(doc.Differences) == 0 || doc.Differences[0].What != x.what || doc.Differences[0].Slower != x.slower {
			t.Errorf("%s: %+v %s", name, doc.Differences, doc.Verdict)
		}
	}
	if doc := diffOf(t, Diff{}, prediction("2x2", 0.002), prediction("2x2", 0.001)); len(doc.Findings) != 1 ||
		doc.Findings[0].Severity != 0 || doc.Wrong() {
		t.Errorf("faster: %+v", doc.Findings)
	}
}
