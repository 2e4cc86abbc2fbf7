// Package gather finds the hosts in the output of tools that run a command on
// many machines: pdsh and clush write "node7: " before each line, dshbak and
// clush -b gather equal output under a list of hosts between two rules, Ansible
// writes "node7 | CHANGED | rc=0 >>" above it.
//
// A host before a line is a guess that the caller confirms by reading the rest.
// The number of names is bounded: a short list can stand for very many.
package gather

import (
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// MaxHosts bounds the hosts that one text may name.
const MaxHosts = 100_000

// Cut splits "node7: rest".
func Cut(line string) (host, rest string, ok bool) {
	line = strings.TrimLeft(line, " ")
	i := strings.IndexByte(line, ':')
	if i < 1 || i > 253 || !IsHost(line[:i]) {
		return "", "", false
	}
	return strings.Clone(line[:i]), strings.TrimPrefix(line[i+1:], " "), true
}

// IsHost reports whether s can be a host name and is no word that the tools
// themselves write before a colon (GPU0, NIC0, Legend).
func IsHost(s string) bool { return hostForm.MatchString(s) && !noHost.MatchString(s) }

var (
	hostForm = lazyre.New(`^[A-Za-z0-9][\w.-]*$`)
	noHost   = lazyre.New(`^(?:(?:GPU|NIC|Legend|ERROR|WARNING)\d*|[\d_.-]+)$`)
)

// Headings follows the headings of a text. The zero value is ready.
type Headings struct {
	hosts  []string
	state  int // 1 after a rule, 2 after a rule and a host list
	next   []string
	budget *cluster.Budget // of names; nil before the first heading
}

// Hosts are those of the last heading; none before the first.
func (h *Headings) Hosts() []string { return h.hosts }

// Host is the host of a line: the one before it, else the first of the last heading, else "".
func (h *Headings) Host(before string) string {
	if before == "" && len(h.hosts) > 0 {
		return h.hosts[0]
	}
	return before
}

// Line takes a line and reports whether it was part of a heading.
func (h *Headings) Line(s string) bool {
	s = strings.TrimSpace(s)
	if host, rest, ok := strings.Cut(s, " | "); ok && strings.HasSuffix(rest, ">>") && IsHost(host) {
		h.hosts, h.state = []string{strings.Clone(host)}, 0
		return true
	}
	rule := len(s) >= 5 && strings.Trim(s, "-") == ""
	switch {
	case rule && h.state == 2:
		h.hosts, h.state = h.next, 0
	case rule:
		h.state = 1
	case h.state == 1:
		if h.next, h.state = h.list(s), 0; h.next == nil {
			return false
		}
		h.state = 2
	default:
		h.state = 0
		return false
	}
	return true
}

// Each hands the lines of a text to take, bare of labels and terminal codes, with the host before them: first the line
// as it stands, without a host; where take does not know it, what follows "node7: ". Headings are followed and not
// handed over.
func (h *Headings) Each(name string, r io.Reader, take func(host, text string, num int) bool) error {
	return lines.Each(name, r, func(num int, text string) error {
		if h.Line(text) || take("", text, num) {
			return nil
		}
		if host, rest, ok := Cut(text); ok {
			take(host, rest, num)
		}
		return nil
	})
}

// Find reports whether ok holds for a line that contains token, or for the same line without the host before it.
func Find(data []byte, token string, ok func(text string) bool) bool {
	return lines.Find(data, token, func(text string) bool {
		if ok(text) {
			return true
		}
		_, rest, is := Cut(text)
		return is && ok(rest)
	})
}

// list reads "node[1-4] (4)" or "node7"; nil when it is neither.
func (h *Headings) list(s string) []string {
	names, count, _ := strings.Cut(s, " ")
	if count != "" && (count[0] != '(' || !strings.HasSuffix(count, ")")) || !strings.ContainsAny(names, "0123456789") {
		return nil
	}
	if h.budget == nil {
		h.budget = cluster.NewBudget(cluster.Limits{Names: MaxHosts}, nil)
	}
	all, err := h.budget.ParseHosts(names)
	if err != nil {
		return nil
	}
	for _, n := range all {
		if !IsHost(n) {
			return nil
		}
	}
	return all
}

// Prompt finds the host in a shell prompt before a command: "[root@node7 ~]#
// nvidia-smi topo -m". It names the machine weakly (it may be a container), so
// it serves only to tell several machines in one text apart.
func Prompt(line, command string) string {
	if !strings.Contains(line, command) {
		return ""
	}
	_, rest, ok := strings.Cut(line, "@")
	if !ok {
		return ""
	}
	end := strings.IndexAny(rest, ": ]~#$")
	if end < 1 || !IsHost(rest[:end]) {
		return ""
	}
	return strings.Clone(rest[:end])
}
