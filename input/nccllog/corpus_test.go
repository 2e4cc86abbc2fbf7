package nccllog

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
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
			checkCounts(t, l, e.Facts)
			checkHosts(t, l, e.Facts)
			checkMaps(t, l, e.Facts)
			checkChannels(t, l, e.Facts)
			checkWarns(t, l, e.Facts)
			for _, nt := range l.Fragment().Types {
				if err := nt.Check(); err != nil {
					t.Error(err)
				}
			}
			if l.Understood+l.NotUnderstood != l.Records || l.NotUnderstood > 10 || len(l.Dropped) != 0 {
				t.Errorf("%d records, %d understood, %d not: %v; dropped %v", l.Records, l.Understood, l.NotUnderstood, l.Unknown,
					l.Dropped)
			}
		})
	}
}

func num(v any) int {
	f, _ := v.(float64)
	return int(f)
}

func checkCounts(t *testing.T, l *Log, facts map[string]any) {
	if n := num(facts["lines"]); l.Lines != n && l.Lines != n-1 { // the index counts the end as a line
		t.Errorf("%d lines, want %d", l.Lines, n)
	}
	for key, got := range map[string]int{
		"nccl_lines": l.NCCLLines, "warn_lines": l.WarnCount, "init_complete": l.Complete,
	} {
		if got != num(facts[key]) {
			t.Errorf("%s: %d, want %v", key, got, facts[key])
		}
	}
}

func checkHosts(t *testing.T, l *Log, facts map[string]any) {
	names := map[string]bool{}
	for _, h := range l.Hosts {
		names[h.Name] = true
	}
	if len(names) != num(facts["n_hosts"]) {
		t.Errorf("hosts %v, want %v", names, facts["n_hosts"])
	}
	for _, h := range facts["hosts"].([]any) { // the first ten
		if !names[h.(string)] {
			t.Errorf("no host %s among %v", h, names)
		}
	}
}

var digits = regexp.MustCompile(`\d+`)

// checkMaps compares what both count by text. The index writes digits as # and
// ends at a blank.
func checkMaps(t *testing.T, l *Log, facts map[string]any) {
	got := map[string]map[string]any{"version": {}, "nranks_seen": {}, "nNodes_seen": {}, "via": {}, "network": {}}
	add := func(key, text string, n int) {
		old, _ := got[key][text].(float64)
		got[key][text] = old + float64(n)
	}
	for _, v := range l.Versions {
		add("version", v.Text, v.N)
	}
	for n, k := range l.NRanks {
		add("nranks_seen", fmt.Sprint(n), k)
	}
	for n, k := range l.NNodes {
		add("nNodes_seen", fmt.Sprint(n), k)
	}
	for _, v := range l.Via {
		word, _, _ := strings.Cut(v.Text, " ")
		add("via", digits.ReplaceAllString(strings.ReplaceAll(word, "*", "#"), "#"), v.N)
	}
	for _, v := range l.Networks {
		word, _, _ := strings.Cut(v.Text, " ")
		add("network", word, v.N)
	}
	for key, g := range got {
		want, _ := facts[key].(map[string]any)
		if fmt.Sprint(g) != fmt.Sprint(want) && len(g)+len(want) > 0 {
			t.Errorf("%s: %v, want %v", key, g, want)
		}
	}
}

// checkChannels compares ring lines and connections by what stands behind the
// slash, and the line of channel counts.
func checkChannels(t *testing.T, l *Log, facts map[string]any) {
	got := map[string]int{}
	var counts []string
	for _, m := range l.Comms {
		for _, k := range m.Ranks {
			for _, r := range k.Rings {
				got[fmt.Sprintf("%02d", r.Channels)]++
			}
			if c := k.Channels; c.NVLS >= 0 {
				counts = append(counts, fmt.Sprintf("%d/%d/%d", c.Coll, c.NVLS, c.P2P))
			}
		}
	}
	for _, c := range l.Connections {
		if c.Index >= 0 {
			got[fmt.Sprint(c.Index)] += c.N
		}
	}
	for _, u := range l.Unknown { // torn connections, which the index counts by their beginning
		if strings.HasPrefix(u.Text, "Channel #/# : #[#]") {
			got["0"] += u.N
		}
	}
	delete(got, "128") // RCCL leaves the colon out when there is one rank
	want := map[string]int{}
	if m, ok := facts["channels_total"].(map[string]any); ok {
		for k, v := range m {
			want[k] = num(v)
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("channels: %v, want %v", got, want)
	}
	slices.Sort(counts)
	wantCounts, ok := facts["coll/nvls/p2p channels"].([]any)
	if counts = slices.Compact(counts); ok && fmt.Sprint(counts) != fmt.Sprint(wantCounts) {
		t.Errorf("channel counts: %v, want %v", counts, wantCounts)
	}
}

// checkWarns compares the shapes of warnings; the index cuts long ones, and where
// newlines were lost its text runs on.
func checkWarns(t *testing.T, l *Log, facts map[string]any) {
	want, _ := facts["warns"].(map[string]any)
	if len(l.WarnShapes) != len(want) {
		t.Errorf("%d kinds of warning, want %d", len(l.WarnShapes), len(want))
	}
	for text, n := range want {
		if !slices.ContainsFunc(l.WarnShapes, func(c Count) bool {
			same := c.Text == text ||
				len(text) > 40 && (strings.HasPrefix(c.Text, text[:40]) && c.N == num(n) || strings.HasPrefix(text, c.Text))
			return same && c.N == num(n)
		}) {
			t.Errorf("no warning %q (%v) among %v", text, n, l.WarnShapes)
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

	l := file("2.7.5-a100x8-alibaba-ib-open-failed.log")
	check(l.Warns[0].File == "misc/ibvwrap.cc" && l.Warns[0].SrcLine > 0 && l.Warns[0].Host == "k69a05298", "%+v",
		l.Warns[0])

	l = file("2.12.10-a100x8-dell-2node.log")
	m := &l.Comms[0]
	check(len(l.Comms) == 1 && m.NRanks == 8 && len(m.Ranks) == 8 && len(m.Rings) == 4 && !m.Rings[0].Cut, "%+v", m)

	l = file("2.18.5-h100x8-2node-xe8640.log")
	check(len(l.Comms) == 2 && l.Comms[0].NRanks == 8 && l.Comms[0].Coll == 16 && l.Comms[0].Ranks[7].Completed.Line > 0,
		"%d comms", len(l.Comms))
	check(slices.ContainsFunc(l.Connections, func(c Connection) bool { return c.Proxy >= 0 && c.GDR && c.Net == "IBext" }),
		"no PXN connection")

	l = file("2.22.3-h200x8-dell-xe9680.log")
	check(l.Comms[0].NRanks == 8 && l.Comms[0].NVLS == 0 && l.Comms[0].NNodes == 1 &&
		l.Env[0].Name == "NCCL_NVLS_ENABLE" && l.Env[0].Value == "0", "%+v %+v", l.Comms[0], l.Env)

	l = file("2.22.3-h200nvl-x3-minimal.log")
	devs := map[int]bool{}
	for _, w := range l.Warns {
		devs[w.Dev] = true
	}
	check(len(devs) == 3, "warnings of %d devices", len(devs))

	l = file("2.25.1-b200x8-dell.log")
	check(l.Comms[0].NRanks == 8 && len(l.Comms[0].Ranks) == 8 && l.Comms[0].NVLS == 32 &&
		l.Comms[0].Ranks[3].Aborted.Line > 0, "%+v", l.Comms[0])

	l = file("rccl-2.22.3-mi300x-x16-2node.log")
	check(l.Comms[0].NRanks == 16 && l.Comms[0].NNodes == 2 && len(l.Comms[0].Ranks) == 8 &&
		l.Networks[0].Text == "Socket", "%+v", l.Comms[0])
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
	check(l.Networks[0].Text == "AWS Libfabric" && l.Comms[0].NRanks == 16 && len(l.Comms[0].Ranks) == 16, "%+v",
		l.Networks)
	check(slices.ContainsFunc(l.Connections, func(c Connection) bool {
		return c.Net == "AWS Libfabric" && c.NetDev == 1 && c.GDR && c.Dir == "send" && c.From == 1 && c.To == 8 &&
			c.FromDev == "101d0"
	}), "no connection over AWS Libfabric")
	check(l.Fragment().Types[0].Devices[1].PCI == "0000:10:1d.0", "%+v", l.Fragment().Types[0].Devices[1])

	l = file("2.19.3-h100x16-nebius-2node.log")
	check(len(l.Comms) == 1 && l.Comms[0].NRanks == 16 && len(l.Comms[0].Ranks) == 16, "%d comms", len(l.Comms))
	for i, k := range l.Comms[0].Ranks { // five of them put together from torn lines
		check(k.Rank == i && k.Completed.Line > 0 && k.Host != "", "rank %d: %+v", i, k)
	}

	for name, coll := range map[string]int{"2.27.7-2rank-healthy.log": 24, "2.27.7-2rank-nvlink-fault.log": 2} {
		l = file(name)
		check(l.Comms[0].NRanks == 2 && l.Comms[0].Coll == coll && l.WarnCount == 0 && len(l.Comms[0].Rings) == coll,
			"%s: %+v", name, l.Comms[0].Channels)
		check(l.Connections[0].Transport == "P2P" && l.Connections[0].Via == "P2P/direct pointer/read", "%s: %+v", name,
			l.Connections[0])
		check(l.Comms[0].System.MaxBw > 0 && len(l.Comms[0].System.Tree) == 6 && len(l.Comms[0].System.Paths) == 6 &&
			len(l.Comms[0].Graphs) == 2, "%s: %+v", name, l.Comms[0].System)
		check(len(l.Comms[0].Graphs[0].Lines) == coll/2, "%s: %d lines", name, len(l.Comms[0].Graphs[0].Lines))
	}
	c, _ := file("2.27.7-2rank-healthy.log").Comms[0].Tuning.Cell("all_reduce", "ring", "simple")
	check(c.LatencyUS == 15.2 && c.GBps == 240, "%+v", c)
	var nic *NIC
	for i, n := range l.NICs {
		if n.Name == "mlx5_0" {
			nic = &l.NICs[i]
		}
	}
	check(nic != nil && nic.Layer == "RoCE" && nic.Mbps == 100000 && nic.PCI == "0000:4b:00.0" && nic.GDR == cluster.No,
		"%+v", nic)

	l = file("2.12.12-4host-panlichen-cut.log")
	check(l.Choices[0].Bytes == 64 && l.Choices[0].Algo == "tree" && l.Choices[0].Proto == "ll" &&
		l.Choices[0].MicroSecs == 49.675526, "%+v", l.Choices[0])

	l = file("2gpu-shm-interleaved.log")
	check(l.Comms[0].NRanks == 2 && len(l.Comms[0].Ranks) == 2 && l.Connections[0].Transport == "SHM", "%+v", l.Comms)

	l = file("duplicate-gpu-notes.md")
	check(strings.HasPrefix(l.Warns[0].Text, "Duplicate GPU detected"), "%+v", l.Warns)

	l = file("nccl-userguide-logging.rst")
	check(l.Warns[0].Time == "2026-05-05 06:16:47" && l.Warns[0].File == "plugin/net.cc" && l.Warns[0].SrcLine == 334 &&
		l.Warns[0].Dev == 3, "%+v", l.Warns[0])

	l = file("ib-completion-error12.log")
	check(strings.Contains(l.Warns[0].Text, "with error 12,") &&
		strings.HasSuffix(l.Warns[0].Text, "vendor err 129 (Recv)"), "%+v", l.Warns[0])
	check(len(l.Returns) == 3 && l.Returns[0].Text == "transport/net.cc:1134 -> 6", "%+v", l.Returns)
	check(len(l.NICs) == 2 && l.NICs[0].Layer == "IB" && l.NICs[1].Layer == "RoCE" && l.NICs[1].Name == "rdmaP1111p0s2",
		"%+v", l.NICs)

	l = file("connection-refused-2.7.8.log")
	check(l.Warns[0].Text == "Connect to 10.148.3.247<56821> failed : Connection refused" && l.Warns[0].At.Line == 21,
		"%+v", l.Warns[0])

	l = file("gib-b200-kuberay.md")
	check(l.Connections[0].Net == "gIB" && l.Connections[0].GDR && l.Connections[0].NetDev == 2, "%+v", l.Connections[0])

	l = file("2.30.7-gb200-cuda719-timestamped.log")
	w := l.Warns[0]
	check(w.Func == "ncclStrongStreamSynchronize" && w.File == "misc/strongstream.cc" && w.SrcLine == 424 &&
		w.Time == "2026-07-23 04:16:01" && w.Dev == 1, "%+v", w)

	l = file("bootstrap-no-interface-flattened.log")
	check(l.Records == 4 && l.Warns[0].Text == "Bootstrap : no socket interface found" &&
		l.Warns[0].File == "bootstrap.cc" && l.Env[0].Value == "^lo,docker,veth", "%+v %+v", l.Warns, l.Env)

	l = file("2.27.5-roce-virtual-device.log")
	check(l.Comms[0].NRanks == 16 && l.Choices[0].Algo == "tree" && l.Choices[0].Op == "all_reduce" &&
		l.Choices[0].Hi == 0, "%+v", l.Choices)
	f = l.Fragment()
	check(f.Types[0].Devices[0].NIC.Ports[0].Rate.Value.Gbps() == 400 && f.Types[0].Devices[0].PCI == "0000:19:00.0",
		"%+v", f.Types[0].Devices)
}
