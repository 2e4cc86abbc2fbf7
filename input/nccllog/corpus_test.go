package nccllog

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	textlines "busbar.dev/internal/lines"
	"busbar.dev/internal/test/corpus"
)

func readCorpus(t *testing.T, file string) *Log {
	t.Helper()
	l, err := ReadLog(file, strings.NewReader(string(corpus.Open(t, file))))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// printed are the records of a text with what they say, and how many lines have one of INFO or WARN.
func printed(text string) (list []Record, lines int) {
	num := 0
	for line := range strings.Lines(text) {
		num++
		records := new(Parser).ParseLine(unwrap(strings.TrimRight(line, "\r\n")), Pos{"f", num}).Records
		list = append(list, records...)
		if len(records) > 0 && (records[0].Level == "INFO" || records[0].Level == "WARN") {
			lines++
		}
	}
	return list, lines
}

// warnings are the texts of the warnings among records.
func warnings(list []Record) (texts []string) {
	for _, r := range list {
		if r.Level == "WARN" {
			texts = append(texts, r.Text)
		}
	}
	return texts
}

// exceptions are facts of the index that a person reading the file corrects.
var exceptions = map[string]map[string]any{
	// "sum" of a torn nccl-tests row ran into two host names.
	"nccl-log/2.12.12-4host-panlichen-cut.log": {
		"n_hosts": 4.0, "hosts": []any{"oneflow-25", "oneflow-26", "oneflow-27", "oneflow-28"},
	},
	// The third mention of nNodes is prose.
	"nccl-log/duplicate-gpu-notes.md": {"nNodes_seen": map[string]any{"2": 2.0}},
}

// Every sample of the corpus, held to what its index says.
func TestCorpus(t *testing.T) {
	for _, e := range corpus.Index(t, "NCCL_DEBUG log") {
		t.Run(e.File, func(t *testing.T) {
			if !Match(corpus.Open(t, e.File)) {
				t.Error("Match says no")
			}
			l := readCorpus(t, e.File)
			maps.Copy(e.Facts, exceptions[e.File])
			checkHosts(t, l, e.Facts)
			checkRecords(t, string(corpus.Open(t, e.File)), e.Facts)
			versions := map[string]any{}
			for _, v := range l.Versions {
				versions[v.Text] = float64(v.N)
			}
			if want, _ := e.Facts["version"].(map[string]any); fmt.Sprint(versions) != fmt.Sprint(want) && len(versions) > 0 {
				t.Errorf("versions %v, want %v", versions, want)
			}
			for _, nt := range l.Fragment().Types {
				if err := nt.Check(); err != nil {
					t.Error(err)
				}
			}
			if l.NotUnderstood > 15 || len(l.Dropped) != 0 {
				t.Errorf("%d records, %d not understood: %v; dropped %v", l.Records, l.NotUnderstood, l.Unknown, l.Dropped)
			}
		})
	}
}

func intOf(v any) int {
	f, _ := v.(float64)
	return int(f)
}

func checkHosts(t *testing.T, l *Log, facts map[string]any) {
	names := map[string]bool{}
	for _, h := range l.Hosts {
		names[h] = true
	}
	if len(names) != intOf(facts["n_hosts"]) {
		t.Errorf("hosts %v, want %v", names, facts["n_hosts"])
	}
	for _, h := range facts["hosts"].([]any) { // the first ten
		if !names[h.(string)] {
			t.Errorf("no host %s among %v", h, names)
		}
	}
}

// checkRecords compares lines with records, warnings, completed set-ups and the kinds of warnings; the index cuts long
// ones, and where newlines were lost its text runs on.
func checkRecords(t *testing.T, text string, facts map[string]any) {
	list, lines := printed(text)
	warns := warnings(list)
	complete := 0
	for _, r := range list {
		if m, ok := r.Message.(*CommLine); ok && m.What == InitComplete {
			complete++
		}
	}
	if torn := intOf(facts["init_complete"]) - complete; torn < 0 || torn > 5 {
		t.Errorf("%d set-ups complete, want %v but for torn ones", complete, facts["init_complete"])
	}
	if lines != intOf(facts["nccl_lines"]) || len(warns) != intOf(facts["warn_lines"]) {
		t.Errorf("%d lines of NCCL, %d warnings; want %v and %v", lines, len(warns), facts["nccl_lines"],
			facts["warn_lines"])
	}
	got := map[string]int{}
	for _, w := range warns {
		got[textlines.Shape(w[:min(len(w), 200)])]++
	}
	want, _ := facts["warns"].(map[string]any)
	if len(got) != len(want) {
		t.Errorf("%d kinds of warning, want %d", len(got), len(want))
	}
	for text, n := range want {
		found := false
		for shape, k := range got {
			found = found || k == intOf(n) && (shape == text ||
				len(text) > 40 && (strings.HasPrefix(shape, text[:40]) || strings.HasPrefix(text, shape)))
		}
		if !found {
			t.Errorf("no warning %q (%v) among %v", text, n, got)
		}
	}
}

// What the index wants found in words, file by file.
func TestMustFind(t *testing.T) {
	file := func(name string) *Log { return readCorpus(t, "nccl-log/"+name) }
	check := func(ok bool, format string, args ...any) {
		t.Helper()
		if !ok {
			t.Errorf(format, args...)
		}
	}

	warns := func(name string) []string {
		list, _ := printed(string(corpus.Open(t, "nccl-log/"+name)))
		return warnings(list)
	}

	l := file("2.12.10-a100x8-dell-2node.log")
	m := &l.Comms[0]
	check(len(l.Comms) == 1 && m.NRanks == 8 && len(m.Ranks) == 8 && len(m.Rings) == 4 && !m.Rings[0].Cut, "%+v", m)

	l = file("2.18.5-h100x8-2node-xe8640.log")
	check(len(l.Comms) == 2 && l.Comms[0].NRanks == 8 &&
		l.Comms[0].Ranks[7].Completed.Line > 0,
		"%d comms", len(l.Comms))
	check(slices.ContainsFunc(l.Connections, func(c Connection) bool { return c.Proxy >= 0 && c.GDR && c.Net == "IBext" }),
		"no PXN connection")

	l = file("2.22.3-h200x8-dell-xe9680.log")
	check(l.Comms[0].NRanks == 8 && l.Comms[0].NNodes == 1, "%+v", l.Comms[0])

	devs := map[int]bool{}
	list, _ := printed(string(corpus.Open(t, "nccl-log/2.22.3-h200nvl-x3-minimal.log")))
	for _, r := range list {
		if r.Level == "WARN" {
			devs[r.Dev] = true
		}
	}
	check(len(devs) == 3, "warnings of %d devices", len(devs))

	l = file("2.25.1-b200x8-dell.log")
	check(l.Comms[0].NRanks == 8 && len(l.Comms[0].Ranks) == 8 && l.Comms[0].Ranks[3].Ended, "%+v",
		l.Comms[0])

	l = file("rccl-2.22.3-mi300x-x16-2node.log")
	check(l.Comms[0].NRanks == 16 && l.Comms[0].NNodes == 2 && len(l.Comms[0].Ranks) == 8, "%+v",
		l.Comms[0])
	f := l.Fragment()
	check(len(f.Hosts) == 1 && f.Types[0].Count(cluster.GPU) == 8 && f.Types[0].Count(cluster.NIC) == 8 &&
		f.Types[0].Devices[0].GPU.Vendor == "amd", "%+v", f.Types[0])

	l = file("2.7.8-v100x64-16node-opa.log")
	m = &l.Comms[0]
	check(len(l.Comms) == 1 && m.NRanks == 64 && len(m.Ranks) == 64 && len(m.Trees) == 4 && len(m.Trees[0].Nodes) == 64,
		"%d comms", len(l.Comms))
	check(len(m.Rings) == 4 && m.Rings[0].Cut && len(m.Rings[0].Ranks) == 20, "ring %+v", m.Rings[0])
	f = l.Fragment()
	check(len(f.Hosts) == 16 && len(f.Types) == 1 && f.Types[0].Devices[4].NIC.Kind == cluster.OmniPath,
		"%d hosts, %d types", len(f.Hosts), len(f.Types))

	l = file("2.9.9-p4d-efa-eks.log")
	check(l.Comms[0].NRanks == 16 && len(l.Comms[0].Ranks) == 16, "%+v", l.Comms[0])
	check(slices.ContainsFunc(l.Connections, func(c Connection) bool {
		return c.Net == "AWS Libfabric" && c.NetDev == 1 && c.GDR && c.Dir == "send" && c.From == 1 && c.To == 8
	}), "no connection over AWS Libfabric")
	check(l.Fragment().Types[0].Devices[1].PCI == "0000:10:1d.0", "%+v", l.Fragment().Types[0].Devices[1])

	l = file("2.19.3-h100x16-nebius-2node.log")
	check(len(l.Comms) == 1 && l.Comms[0].NRanks == 16 && len(l.Comms[0].Ranks) == 16, "%d comms", len(l.Comms))
	for i, k := range l.Comms[0].Ranks { // the ends of five stand on lines of their own
		check(k.Rank == i && k.Completed.Line > 0 && k.Host != "", "rank %d: %+v", i, k)
	}

	for name, coll := range map[string]int{"2.27.7-2rank-healthy.log": 24, "2.27.7-2rank-nvlink-fault.log": 2} {
		l = file(name)
		check(l.Comms[0].NRanks == 2 && len(warns(name)) == 0 &&
			len(l.Comms[0].Rings) == coll, "%s: %+v", name, l.Comms[0])
		check(l.Connections[0].Transport == "P2P" && l.Connections[0].Via == "P2P/direct pointer/read", "%s: %+v", name,
			l.Connections[0])
	}
	var nic *NIC
	for i, n := range l.NICs {
		if n.Name == "mlx5_0" {
			nic = &l.NICs[i]
		}
	}
	check(nic != nil && nic.Layer == "RoCE" && nic.Mbps == 100000 && nic.PCI == "0000:4b:00.0" && nic.GDR == cluster.No,
		"%+v", nic)

	l = file("2gpu-shm-interleaved.log")
	check(l.Comms[0].NRanks == 2 && len(l.Comms[0].Ranks) == 2 && l.Connections[0].Transport == "SHM", "%+v", l.Comms)

	check(strings.HasPrefix(warns("duplicate-gpu-notes.md")[0], "Duplicate GPU detected"), "no duplicate GPU")
	check(strings.Contains(warns("ib-completion-error12.log")[0], "with error 12,"), "no error 12")
	l = file("ib-completion-error12.log")
	check(len(l.NICs) == 2 && l.NICs[0].Layer == "IB" && l.NICs[1].Layer == "RoCE" && l.NICs[1].Name == "rdmaP1111p0s2",
		"%+v", l.NICs)

	check(warns("connection-refused-2.7.8.log")[0] == "Connect to 10.148.3.247<56821> failed : Connection refused",
		"no refused connection")

	l = file("gib-b200-kuberay.md")
	check(l.Connections[0].Net == "gIB" && l.Connections[0].GDR && l.Connections[0].NetDev == 2, "%+v", l.Connections[0])

	flat, _ := printed(string(corpus.Open(t, "nccl-log/bootstrap-no-interface-flattened.log")))
	check(len(flat) == 4 && warnings(flat)[0] == "Bootstrap : no socket interface found", "%+v", flat)

	l = file("2.27.5-roce-virtual-device.log")
	check(l.Comms[0].NRanks == 16, "%+v", l.Comms[0])
	f = l.Fragment()
	check(f.Types[0].Devices[0].NIC.Ports[0].Rate.Value.Gbps() == 400 && f.Types[0].Devices[0].PCI == "0000:19:00.0",
		"%+v", f.Types[0].Devices)
}
