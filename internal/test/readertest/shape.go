package readertest

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/cluster"
)

// Shape describes a network, a line for each switch: its tier, its hosts and what is
// under it.
func Shape(c *cluster.Cluster) string {
	var b strings.Builder
	for i := range c.Network.Switches {
		b.WriteString(head(&c.Network.Switches[i]))
		if hosts := On(c, i); len(hosts) > 0 {
			fmt.Fprintf(&b, " hosts=%s", cluster.FormatHosts(hosts))
		}
		if under := Under(c, i); len(under) > 0 {
			fmt.Fprintf(&b, " under=%s", cluster.FormatHosts(under))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// On are the hosts on a switch.
func On(c *cluster.Cluster, sw int) []string {
	var names []string
	for _, l := range c.Network.Links {
		if l.A.Switch == sw {
			names = append(names, hosts(c, l.B)...)
		}
	}
	return names
}

// Under are the switches under a switch, by name.
func Under(c *cluster.Cluster, sw int) []string {
	var names []string
	for _, l := range c.Network.Links {
		if l.A.Switch == sw && !l.B.ToHosts() {
			names = append(names, c.Network.Switches[l.B.Switch].Name)
		}
	}
	slices.Sort(names)
	return names
}

// Cables is Shape with every cable: the NIC where one is known, and how many there are.
func Cables(c *cluster.Cluster) string {
	var b strings.Builder
	for i := range c.Network.Switches {
		b.WriteString(head(&c.Network.Switches[i]))
		for _, l := range c.Network.Links {
			if l.A.Switch != i {
				continue
			}
			switch {
			case l.B.ToHosts() && l.B.NIC >= 0:
				t := c.TypeOf(l.B.Hosts[0].First)
				fmt.Fprintf(&b, " %s/%s", cluster.FormatHosts(hosts(c, l.B)), t.Devices[t.Of(cluster.NIC)[l.B.NIC]].Label)
			case l.B.ToHosts():
				fmt.Fprintf(&b, " %s", cluster.FormatHosts(hosts(c, l.B)))
			default:
				fmt.Fprintf(&b, " >%s", c.Network.Switches[l.B.Switch].Name)
			}
			if l.Count > 1 {
				fmt.Fprintf(&b, "×%d", l.Count)
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// head is what both forms say of a switch itself.
func head(s *cluster.Switch) string {
	if s.Domain {
		return fmt.Sprintf("%s group tier=%d", s.Name, s.Tier)
	}
	return fmt.Sprintf("%s tier=%d", s.Name, s.Tier)
}

// hosts are the names of the hosts at an end of a cable.
func hosts(c *cluster.Cluster, e cluster.End) []string {
	var names []string
	for _, s := range e.Hosts {
		for h := s.First; h < s.First+s.N; h++ {
			names = append(names, c.Hosts[h].Name)
		}
	}
	return names
}

// Sorted is a text with its lines in order.
func Sorted(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// Flush is a text without the indentation that a test's layout gave it.
func Flush(text string) string {
	var b strings.Builder
	for l := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		b.WriteString(strings.TrimSpace(l) + "\n")
	}
	return b.String()
}

// Warnings are a fragment's warnings, one a line.
func Warnings(f *cluster.Fragment) string {
	var b strings.Builder
	for _, w := range f.Warnings {
		b.WriteString(w.String() + "\n")
	}
	return b.String()
}
