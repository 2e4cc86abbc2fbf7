package evidence

import (
	"slices"
	"strings"

	"busbar.dev/input/nccllog"
	"busbar.dev/internal/lines"
)

// noInterface leaves out a search for an interface beside another host's: there are
// some, and none of them lies in its network.
func noInterface(g []string) ([]string, bool) {
	return nil, !strings.Contains(strings.ToLower(g[0]), "in the same subnet")
}

// sizes leaves out messages of the set-up, which have no size of a collective.
func sizes(g []string) ([]string, bool) { return []string{strings.ToLower(g[1])}, g[0] == "" }

// none makes observations of a kind alike.
func none([]string) ([]string, bool) { return nil, true }

// anyGroup keeps the first group that is not empty.
func anyGroup(g []string) ([]string, bool) {
	for _, s := range g {
		if s != "" {
			return []string{strings.ToLower(s)}, true
		}
	}
	return nil, true
}

func lowered(g []string) ([]string, bool) {
	out := make([]string, len(g))
	for i, s := range g {
		out[i] = strings.TrimRight(strings.ToLower(strings.TrimSpace(s)), " .'\"")
	}
	return out, true
}

func upper(g []string) ([]string, bool) { return []string{strings.ToUpper(g[0])}, true }

// shapeOf makes messages alike that differ in their numbers.
func shapeOf(g []string) ([]string, bool) { return []string{lines.Shape(g[0])}, true }

// loneRing reports "Channel 00/32 :    0", a ring of one rank.
func loneRing(g []string) ([]string, bool) {
	i := strings.LastIndex(g[0], " : ")
	return nil, strings.Contains(g[0][:i], "Channel ") && strings.TrimSpace(g[0][i+3:]) == "0"
}

// address keeps the interface and what kind of address it has.
func address(g []string) ([]string, bool) { return []string{g[0], addressClass(g[1])}, true }

// addressClass tells addresses apart as far as it matters: link-local ones reach
// no other network, loopback no other host.
func addressClass(a string) string {
	low := strings.ToLower(a)
	switch {
	case strings.HasPrefix(low, "fe80:"):
		return "link-local"
	case strings.HasPrefix(low, "169.254."):
		return "link-local"
	case strings.HasPrefix(low, "127.") || low == "::1":
		return "loopback"
	case strings.Count(low, ":") >= 2:
		return "ipv6"
	case strings.HasPrefix(low, "172.17."):
		return "docker"
	case strings.Count(low, ".") == 3:
		return "ipv4"
	}
	return ""
}

// interfaces reads "[0]eth0:10.0.0.1<0> [1]veth1:fe80::1<0>".
func interfaces(g []string) ([]string, bool) {
	var names, classes []string
	for _, n := range nccllog.ParseDevices("", g[0]).NICs {
		names, classes = append(names, n.Name), append(classes, addressClass(n.Addr))
	}
	return []string{strings.Join(names, ","), strings.Join(classes, ",")}, len(names) > 0
}

// adapters reads "[0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>".
func adapters(g []string) ([]string, bool) {
	var names, layers []string
	for _, n := range nccllog.ParseDevices("", g[0]).NICs {
		names = append(names, n.Name)
		if (n.Layer == "IB" || n.Layer == "RoCE") && !slices.Contains(layers, n.Layer) {
			layers = append(layers, n.Layer)
		}
	}
	slices.Sort(layers)
	return []string{strings.Join(names, ","), strings.Join(layers, "+")}, len(names) > 0
}

// overNet reads "… via NET/IB/0/GDRDMA".
func overNet(g []string) ([]string, bool) {
	_, via, ok := strings.Cut(g[0], " NET/")
	if !ok {
		return nil, false
	}
	return wayNet(via)
}

// wayNet reads "IB/0/GDRDMA".
func wayNet(via string) ([]string, bool) {
	name, rest, ok := strings.Cut(via, "/")
	if !ok || len(name) > 40 {
		return nil, false
	}
	gdr := ""
	if strings.Contains(rest, "/GDRDMA") {
		gdr = "gdr"
	}
	return []string{name, gdr}, true
}

// overP2P reads "… via P2P/CUMEM/read".
func overP2P(g []string) ([]string, bool) {
	_, via, _ := strings.Cut(g[0], "via P2P/")
	return wayP2P(via)
}

// wayP2P reads "CUMEM/read".
func wayP2P(via string) ([]string, bool) {
	if i := strings.IndexAny(via, "/ "); i >= 0 {
		via = via[:i]
	}
	return []string{via}, len(via) < 40
}
