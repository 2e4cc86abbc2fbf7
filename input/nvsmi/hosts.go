package nvsmi

import (
	"strings"

	"busbar/cluster"
)

// maxHosts bounds the hosts that one text may name.
const maxHosts = 100_000

// cutHost splits "node7: rest", as pdsh and clush write before each line. It is
// a guess: the caller looks whether the rest makes sense.
func cutHost(line string) (host, rest string, ok bool) {
	line = strings.TrimLeft(line, " ")
	i := strings.IndexByte(line, ':')
	if i < 1 || i > 253 || !isHost(line[:i]) {
		return "", "", false
	}
	return strings.Clone(line[:i]), strings.TrimPrefix(line[i+1:], " "), true
}

// isHost reports whether s can be a host name and is no word of nvidia-smi's own.
func isHost(s string) bool {
	letter := false
	for i := range len(s) {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z':
			letter = true
		case c >= '0' && c <= '9':
		case (c == '-' || c == '.' || c == '_') && i > 0:
		default:
			return false
		}
	}
	_, gpu := numbered(s, "GPU")
	_, nic := numbered(s, "NIC")
	return letter && !gpu && !nic && s != "Legend"
}

// gathered follows the headings under which tools gather equal output: dshbak's
// and clush -b's host list between two rules, Ansible's "node7 | CHANGED | rc=0 >>".
type gathered struct {
	hosts []string
	state int // 1 after a rule, 2 after a rule and a host list
	next  []string
	named int // names so far: a short list can stand for very many
}

// line takes a line and reports whether it was part of a heading.
func (g *gathered) line(s string) bool {
	s = strings.TrimSpace(s)
	if host, rest, ok := strings.Cut(s, " | "); ok && strings.HasSuffix(rest, ">>") && isHost(host) {
		g.hosts, g.state = []string{strings.Clone(host)}, 0
		return true
	}
	rule := len(s) >= 5 && strings.Trim(s, "-") == ""
	switch {
	case rule && g.state == 2:
		g.hosts, g.state = g.next, 0
	case rule:
		g.state = 1
	case g.state == 1:
		g.next, g.state = nil, 0
		if g.named < maxHosts {
			g.next = hostList(s)
			g.named += len(g.next)
		}
		if g.next == nil {
			return false
		}
		g.state = 2
	default:
		g.state = 0
		return false
	}
	return true
}

// hostList reads "node[1-4] (4)" or "node7"; nil when it is neither.
func hostList(s string) []string {
	list, count, _ := strings.Cut(s, " ")
	if count != "" && (count[0] != '(' || !strings.HasSuffix(count, ")")) || !strings.ContainsAny(list, "0123456789") {
		return nil
	}
	names, err := cluster.ParseHosts(list)
	if err != nil || len(names) > maxHosts {
		return nil
	}
	for _, n := range names {
		if !isHost(n) {
			return nil
		}
	}
	return names
}

// promptHost finds the host in a shell prompt before a command: "[root@node7 ~]#
// nvidia-smi topo -m". It names the machine weakly (it may be a container), so
// it is used only to tell several machines in one text apart.
func promptHost(line string) string {
	if !strings.Contains(line, "nvidia-smi") {
		return ""
	}
	_, rest, ok := strings.Cut(line, "@")
	if !ok {
		return ""
	}
	end := strings.IndexAny(rest, ": ]~#$")
	if end < 1 || !isHost(rest[:end]) {
		return ""
	}
	return strings.Clone(rest[:end])
}

// numbered splits "GPU7" into its number.
func numbered(s, stem string) (int, bool) {
	rest, ok := strings.CutPrefix(s, stem)
	if !ok || rest == "" || len(rest) > 4 {
		return 0, false
	}
	n := 0
	for i := range len(rest) {
		if rest[i] < '0' || rest[i] > '9' {
			return 0, false
		}
		n = n*10 + int(rest[i]-'0')
	}
	return n, true
}
