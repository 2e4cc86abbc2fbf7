package ncclxml

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"busbar.dev/cluster"
)

// noteHead begins the comment that Write puts on top of a file.
const noteHead = "Written by busbar; NCCL skips this comment, busbar reads it back."

// note is what the model knows and the format has no word for. Devices are
// named by the address they have in the file.
type note struct {
	domain  string                 // PCI domain of addresses that were made up
	sockets map[int]string         // NUMA id → socket
	unknown map[int]bool           // NUMA ids that are there only to tell cpus apart
	roots   map[cluster.PCI]string // device right below a cpu → host bridge
	direct  map[cluster.PCI]string // "root" for devices without a host bridge above them
	model   map[cluster.PCI]string // GPU → model
	kind    map[cluster.PCI]string // NIC → network
}

// everything stands for all devices in a note.
const everything cluster.PCI = "all"

// loose reports a node of which nobody knows the NUMA domains: the cpu element
// is there only because devices need one.
func (n *note) loose() bool { return n.direct[everything] == "cpu" }

func (n *note) socketOf(numa int) string { return n.sockets[numa] }

// madeUp reports an address that is in the file only because each device needs one.
func (n *note) madeUp(addr cluster.PCI) bool {
	return n.domain != "" && strings.HasPrefix(string(addr), n.domain+":")
}

// text is the comment, empty when there is nothing to say.
func (n *note) text() string {
	var lines []string
	if n.domain != "" {
		lines = append(lines, "made-up addresses: domain "+n.domain)
	}
	if len(n.unknown) > 0 {
		line := "unnumbered:"
		for _, id := range slices.Sorted(maps.Keys(n.unknown)) {
			line += " " + strconv.Itoa(id)
		}
		lines = append(lines, line)
	}
	lines = append(lines, grouped("socket", n.sockets, func(a, b int) int { return a - b }, strconv.Itoa)...)
	lines = append(lines, grouped("root", n.roots, compareAddr, addrText)...)
	lines = append(lines, grouped("no", n.direct, compareAddr, addrText)...)
	lines = append(lines, grouped("model", n.model, compareAddr, addrText)...)
	lines = append(lines, grouped("network", n.kind, compareAddr, addrText)...)
	if len(lines) == 0 {
		return ""
	}
	return "<!-- " + noteHead + "\n  " + strings.Join(lines, "\n  ") + "\n-->\n"
}

// grouped writes "root root0: a b" for a map of members to their group, groups
// in the order of their first members. Text that would end the comment or the
// key is changed.
func grouped[K comparable](word string, of map[K]string, less func(a, b K) int, text func(K) string) []string {
	groups := map[string][]K{}
	var names []string
	for k, g := range of {
		g = strings.NewReplacer("--", "-", ":", " ").Replace(clean(g))
		if groups[g] == nil {
			names = append(names, g)
		}
		groups[g] = append(groups[g], k)
	}
	for _, m := range groups {
		slices.SortFunc(m, less)
	}
	slices.SortFunc(names, func(a, b string) int { return less(groups[a][0], groups[b][0]) })
	lines := make([]string, 0, len(names))
	for _, g := range names {
		line := word + " " + g + ":"
		for _, k := range groups[g] {
			line += " " + text(k)
		}
		lines = append(lines, line)
	}
	return lines
}

func addrText(p cluster.PCI) string { return string(p) }

// parseNote reads a comment that Write wrote, nil for any other. Lines it does
// not know are passed over: a later version may write more.
func parseNote(text string) *note {
	_, body, ok := strings.Cut(text, noteHead)
	if !ok {
		return nil
	}
	n := &note{
		sockets: map[int]string{}, roots: map[cluster.PCI]string{}, direct: map[cluster.PCI]string{},
		model: map[cluster.PCI]string{}, kind: map[cluster.PCI]string{}, unknown: map[int]bool{},
	}
	of := map[string]map[cluster.PCI]string{"root": n.roots, "no": n.direct, "model": n.model, "network": n.kind}
	for line := range strings.Lines(body) {
		key, value, ok := strings.Cut(strings.TrimSpace(line), ": ")
		if !ok {
			continue
		}
		word, about, _ := strings.Cut(key, " ")
		switch {
		case word == "made-up":
			n.domain = strings.TrimPrefix(value, "domain ")
		case word == "unnumbered":
			for _, f := range strings.Fields(value) {
				if id, err := strconv.Atoi(f); err == nil {
					n.unknown[id] = true
				}
			}
		case word == "socket":
			for _, f := range strings.Fields(value) {
				if id, err := strconv.Atoi(f); err == nil {
					n.sockets[id] = about
				}
			}
		case of[word] != nil:
			for _, f := range strings.Fields(value) {
				of[word][cluster.PCI(f)] = about
			}
		}
	}
	return n
}
