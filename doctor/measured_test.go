package doctor_test

import (
	"fmt"
	"strings"
	"testing"

	"busbar.dev/doctor"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// pairsText is what busbar bench pairs --json prints for four hosts.
func pairsText(alone bool, rate func(a, b int) float64) string {
	var rows []string
	for a := range 4 {
		var cells []string
		for b := range 4 {
			if a == b {
				cells = append(cells, "null")
				continue
			}
			cells = append(cells, fmt.Sprint(rate(a, b)))
		}
		rows = append(rows, "["+strings.Join(cells, ",")+"]")
	}
	return fmt.
		Sprintf(`{"alone":%v,"names":["n0","n1","n2","n3"],"hosts":["n0","n1","n2","n3"],"bandwidth_GBps":[%s],"findings":[]}`, alone, strings.Join(rows, ","))
}

const flat = `# nThread 1 nGpus 1 minBytes 1 maxBytes 1 step: 2(factor) warmup iters: 5 iters: 4 agg iters: 1 validation: 0 graph: 0
# Using 4 ranks on CPUs, transport tcp, algorithm ring
#  Rank  0 Group  0 Pid    345 on      node0 device  0 [0x00] CPU
#  Rank  1 Group  0 Pid    356 on      node%d device  1 [0x00] CPU
#  Rank  2 Group  0 Pid    346 on      node%d device  2 [0x00] CPU
#  Rank  3 Group  0 Pid    349 on      node1 device  3 [0x00] CPU
#       size         count      type   redop    root     time   algbw   busbw  #wrong
     4194304       1048576     float     sum      -1   107240    0.04    0.06     N/A
`

func TestMeasured(t *testing.T) {
	even := func(a, b int) float64 { return 10 + 0.1*float64(a^b) }
	slowNIC := func(a, b int) float64 {
		if a == 2 || b == 2 {
			return 2.5
		}
		return even(a, b)
	}
	for _, x := range []struct{ name, text, id, where string }{
		{"healthy pairs", pairsText(false, even), "", ""},
		{"slow NIC", pairsText(false, slowNIC), "nic-slow", "n2"},
		{
			"slow NIC, but measurements of a pair lie further apart",
			strings.Replace(pairsText(false, slowNIC), "{", `{"scatter":[0.3,0.3,0.9],`, 1), "", "",
		},
		{
			"slow NIC, but more ranks than processors", strings.Replace(pairsText(false, slowNIC), "{",
				`{"notes":["4 ranks share 2 processors of a host"],`, 1), "", "",
		},
		{"uplink", pairsText(false, func(a, b int) float64 {
			if a/2 != b/2 {
				return 2.5 + 0.3*float64(a)
			}
			return even(a, b)
		}), "uplink-oversubscribed", "n[0-1] | n[2-3]"},
		{
			"labels of ranks", "node0| " + strings.ReplaceAll(pairsText(false, slowNIC), ",\"", "\nnode0| ,\""), "nic-slow",
			"n2",
		},
		{"ring in the order of nodes", fmt.Sprintf(flat, 0, 1), "", ""},
		{"flat ring", fmt.Sprintf(flat, 1, 0), "flat-ring", ""},
		{
			"dead", "node0| busbar: rank 2 (node2, pid 74) died: its connections closed; it was last seen at step 6\n",
			"rank-died", "node2",
		},
		{
			"silent", "node0| busbar: rank 2 (node2, pid 74) has been silent for 2.5 s: it hangs or is cut off\n", "rank-silent",
			"node2",
		},
		{
			"loopback", "node1| busbar: rank 1 of 4 joins at 10.64.1.1:29503: not all ranks came within 5s; last: " +
				"10.64.1.1:29503: dial tcp 127.0.0.1:0->10.64.1.1:29503: connect: invalid argument\n", "interface-unreachable",
			"node1",
		},
		{"one host", "busbar: dial tcp 127.0.0.1:0->127.0.0.1:29503: connect: connection refused\n", "connect-failed", ""},
		{"MTU", "node0| 2: nic0@if3: <UP> mtu 9000 qdisc tbf\nnode1| 2: nic0@if4: <UP> mtu 9000 qdisc tbf\nnode2| 2: " +
			"nic0@if5: <UP> mtu 1500 qdisc tbf\n", "mtu-differs", "node2"},
		{"MTUs alike", "node0| 2: nic0@if3: <UP> mtu 9000 qdisc tbf\nnode1| 2: nic0@if4: <UP> mtu 9000 qdisc tbf\n", "", ""},
	} {
		r := evidence.NewReader()
		if err := r.Read("t", strings.NewReader(x.text)); err != nil {
			t.Fatal(err)
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		rep := doctor.Examine(set)
		switch {
		case x.id == "" && finding.Serious(rep.Findings):
			t.Errorf("%s: %s", x.name, rep.Findings[0].Title)
		case x.id == "":
		case len(rep.Findings) == 0 || rep.Findings[0].ID != x.id || rep.Findings[0].Where != x.where:
			t.Errorf("%s: %+v; want %s at %q", x.name, rep.Findings, x.id, x.where)
		}
	}
}
