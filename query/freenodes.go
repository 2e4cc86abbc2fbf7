package query

import (
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
	"busbar.dev/input"
	"busbar.dev/input/k8s"
	"busbar.dev/input/slurm"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/words"
	"busbar.dev/nccl"
)

// mostFreeText bounds a file of free nodes.
const mostFreeText = 64 << 20

// freeNames are the names of nodes that word stands for: a hostlist, or a file (- is standard input) with what a scheduler says
// is free, or with names.
func (e *Env) freeNames(b *cluster.Budget, flag, word string) ([]string, error) {
	text, err := e.freeText(word)
	if err != nil {
		return nil, err
	}
	var names []string
	var known bool
	switch {
	case text == "":
		if names, err = b.ParseHosts(word); err != nil {
			err = fmt.Errorf("expected a hostlist or a file: %w", err)
		}
		known = true
	case k8s.Match([]byte(text)):
		names, err = k8s.FreeNodes(text)
		known = true
	default:
		if names, known, err = slurm.FreeNodes(b, text); err == nil && !known {
			names, err = e.namesIn(b, word, text)
		}
	}
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s %.80s: %w", flag, word, err)
	case len(names) == 0:
		return nil, fmt.Errorf("%s %.80s: no node in it is free; expected idle ones in sinfo or scontrol show node, or ready ones with free GPUs in kubectl get nodes,pods -A -o json", flag, word)
	}
	return names, nil
}

// freeText is what a file holds; none where the word names no file.
func (e *Env) freeText(word string) (string, error) {
	r := io.Reader(nil)
	if word == "-" {
		r = e.stdin()
	} else {
		if _, err := fs.Stat(e.files(), word); err != nil {
			return "", nil
		}
		f, err := e.files().Open(word)
		if err != nil {
			return "", failure.Cannot(err)
		}
		defer f.Close()
		r = f
	}
	data, err := io.ReadAll(io.LimitReader(r, mostFreeText+1))
	switch {
	case err != nil:
		return "", failure.Cannot(err)
	case len(data) > mostFreeText:
		return "", fmt.Errorf("%s: more than %d MiB; expected a list of free nodes", word, mostFreeText>>20)
	case len(strings.TrimSpace(string(data))) == 0:
		return "", fmt.Errorf("%s: empty; expected a list of free nodes", word)
	}
	return string(data), nil
}

// namesIn are the hosts of any source that map reads, such as a cloud's list of instances, or the names in a plain list.
func (e *Env) namesIn(b *cluster.Budget, word, text string) ([]string, error) {
	var names []string
	if frags, err := input.ReadWithin(b, word, strings.NewReader(text)); err == nil {
		for _, f := range frags {
			for i := range f.Hosts {
				names = append(names, f.Hosts[i].Name)
			}
		}
		return slices.DeleteFunc(names, func(n string) bool { return n == "" }), nil
	}
	for line := range strings.Lines(text) {
		line, _, _ = strings.Cut(line, "#")
		for _, w := range strings.Fields(line) {
			list, err := b.ParseHosts(w)
			if err != nil {
				return nil, fmt.Errorf("neither what a scheduler prints nor a list of hosts: %w", err)
			}
			names = append(names, list...)
		}
	}
	return names, nil
}

// outOfService are the hosts that a scheduler gave no jobs when its nodes were listed, with their states, by name.
func outOfService(cl *cluster.Cluster) map[string]string {
	out := map[string]string{}
	for i := range cl.Hosts {
		if o := cl.Hosts[i].Out; o != nil {
			out[cl.Hosts[i].Name] = o.State
		}
	}
	return out
}

// noteOutOfService notes hosts of a layout that a scheduler gave no jobs.
func (e *Env) noteOutOfService(cl *cluster.Cluster, l nccl.Layout) {
	var list []string
	for i, r := range l {
		if o := cl.Hosts[r.Host].Out; o != nil && (i == 0 || l[i-1].Host != r.Host) {
			list = append(list, fmt.Sprintf("%s (%s)", cl.Hosts[r.Host].Name, o.State))
		}
	}
	if len(list) > 0 {
		e.note(fmt.Sprintf("%.200s takes part and got no jobs when Slurm's nodes were listed", strings.Join(list, ", ")))
	}
}

// inService are the nodes without those that a scheduler gives no jobs, which are noted.
func (e *Env) inService(all *jobNodes, out map[string]string) *jobNodes {
	var names, left []string
	for _, n := range all.names {
		if state := out[n]; state != "" {
			left = append(left, fmt.Sprintf("%s (%s)", n, state))
			continue
		}
		names = append(names, n)
	}
	if len(left) == 0 {
		return all
	}
	e.note(fmt.Sprintf("left out %.200s: Slurm gives no jobs to them; --free names the nodes to choose from", strings.Join(left, ", ")))
	free, _ := all.named(names)
	return free
}

// alike are the nodes with as many GPUs as most have, the more where two numbers are as common. The others are noted.
func (e *Env) alike(all *jobNodes) *jobNodes {
	count, most := map[int]int{}, 0
	for _, l := range all.ranks {
		count[len(l)]++
	}
	for n, nodes := range count {
		if nodes > count[most] || nodes == count[most] && n > most {
			most = n
		}
	}
	if len(count) < 2 {
		return all
	}
	var names, left []string
	for i, n := range all.names {
		if k := len(all.ranks[i]); k != most {
			left = append(left, fmt.Sprintf("%s (%s)", n, words.Plural(k, "GPU")))
			continue
		}
		names = append(names, n)
	}
	e.note(fmt.Sprintf("left out %.200s: most free nodes have %s; -l NODESxGPUS says how many take part", strings.Join(left, ", "), words.Plural(most, "GPU")))
	same, _ := all.named(names)
	return same
}

// mostDomain is the most GPUs that one NVLink domain of GB200 or GB300 has.
const mostDomain = 72

// nvlinkDomains are groupings of hosts that share NVLink: what Kubernetes calls a clique or accelerator, and blocks of Slurm with
// trays of GB200 or GB300. A block of other machines is only near each other.
func nvlinkDomains(cl *cluster.Cluster) (racks []cluster.Rack) {
	for _, d := range switchtree.Domains(cl) {
		sw := &cl.Network.Switches[d.Switch]
		key, _, _ := strings.Cut(sw.Label, "=")
		joined := strings.HasSuffix(key, "gpu.clique") || strings.HasSuffix(key, "/accelerator")
		gpus, trays := 0, true
		for _, h := range d.Hosts {
			t := cl.TypeOf(h)
			if t == nil {
				trays = false
				break
			}
			for _, g := range t.Of(cluster.GPU) {
				m, ok := hardware.GPUByName(t.Devices[g].Model.Value)
				trays = trays && ok && (m.Name == "gb200" || m.Name == "gb300")
				gpus++
			}
		}
		if joined || trays && gpus <= mostDomain {
			racks = append(racks, cluster.Rack{Name: sw.Name, Hosts: d.Hosts})
		}
	}
	return racks
}

// jobNodes are the nodes of a cluster that a job may take: hosts, or trays of racks.
type jobNodes struct {
	names []string
	racks []string // of each, "" where it is a host of its own
	ranks []nccl.Layout
}

// nodesFor lists a cluster's nodes, with the first gpus GPUs of each; 0 is all.
func nodesFor(cl *cluster.Cluster, gpus int) *jobNodes {
	x := &jobNodes{}
	for h := range cl.Hosts {
		t := cl.TypeOf(h)
		if t == nil {
			continue
		}
		byTray := map[int][]int{}
		for _, g := range t.Of(cluster.GPU) {
			tray := 0
			if t.Trays > 1 {
				tray = t.Devices[g].Tray
			}
			byTray[tray] = append(byTray[tray], g)
		}
		for tray := range max(t.Trays, 1) {
			list := byTray[tray]
			if len(list) == 0 || gpus > len(list) {
				continue
			}
			if gpus > 0 {
				list = list[:gpus]
			}
			var l nccl.Layout
			for _, g := range list {
				l = append(l, nccl.Rank{Host: h, GPU: g})
			}
			name, rack := cl.Hosts[h].Name, ""
			if t.Trays > 1 {
				name, rack = cl.Hosts[h].TrayName(tray, t.Trays), name
			}
			x.names, x.racks, x.ranks = append(x.names, name), append(x.racks, rack), append(x.ranks, l)
		}
	}
	return x
}

// named are the nodes of names, and the names that no node has. A rack's name is all of its trays.
func (x *jobNodes) named(names []string) (out *jobNodes, strange []string) {
	index := map[string][]int{}
	key := func(n string) string { s, _, _ := strings.Cut(strings.ToLower(n), "."); return s }
	for i, n := range x.names {
		index[key(n)] = append(index[key(n)], i)
		if x.racks[i] != "" {
			index[key(x.racks[i])] = append(index[key(x.racks[i])], i)
		}
	}
	out = &jobNodes{}
	taken := map[int]bool{}
	for _, n := range names {
		found := false
		for _, i := range index[key(n)] {
			if !cluster.SameHost(x.names[i], n) && !cluster.SameHost(x.racks[i], n) {
				continue
			}
			if found = true; !taken[i] {
				taken[i] = true
				out.names, out.racks, out.ranks = append(out.names, x.names[i]), append(out.racks, x.racks[i]), append(out.ranks, x.ranks[i])
			}
		}
		if !found {
			strange = append(strange, n)
		}
	}
	return out, strange
}
