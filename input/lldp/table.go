package lldp

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"path"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/yamldoc"
	"busbar.dev/unit"
)

// TableFormat is what fragments of a switch's neighbours carry.
const TableFormat = "LLDP neighbours of a switch"

// maxNeighbours bounds a switch's table.
const maxNeighbours = 4096

// roles are what the columns of the tables are: of SONiC's show lldp table, NVUE's nv show interface [lldp] and
// Arista's show lldp neighbors.
var roles = map[string]string{
	"LocalPort": "port", "RemoteDevice": "system", "RemotePortID": "remote", "Capability": "kind",
	"RemotePortDescr": "descr",
	"Interface":       "port", "Remote Host": "system", "Remote Port": "remote", "Speed": "speed",
	"Port": "port", "Neighbor Device ID": "system", "Neighbor Port ID": "remote",
}

// MatchTable reports whether a switch's table of neighbours is in the text.
func MatchTable(data []byte) bool {
	if bytes.Contains(data[:min(len(data), 1<<20)], []byte(`"lldpNeighbors"`)) {
		return true
	}
	return slices.ContainsFunc([]string{"RemoteDevice", "Remote Host", "Neighbor Device ID"}, func(system string) bool {
		return lines.Find(data, system, func(line string) bool { return headerOf(line) != nil })
	})
}

// ReadTable reads the neighbours of one switch: hosts become nodes with a NIC for each cable, other switches switches.
// The switch's own name stands in the prompt before the command, else it is the file's.
func ReadTable(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := lines.Whole(name, r, maxBytes, "expected the neighbours of one switch")
	if err != nil {
		return nil, err
	}
	own := strings.TrimSuffix(path.Base(strings.ReplaceAll(name, `\`, "/")), path.Ext(name))
	var list []neighbour
	if start := bytes.TrimLeft(data, " \t\r\n"); bytes.HasPrefix(start, []byte("{")) ||
		bytes.HasPrefix(start, []byte("[")) {
		if list, err = aristaJSON(string(start)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	} else {
		list, own = fromTable(string(data), own)
	}
	f := &cluster.Fragment{Format: TableFormat, Source: name}
	fillTable(f, own, list)
	if len(f.Network.Links) == 0 {
		return nil, fmt.Errorf("%s: no neighbour in the table; expected SONiC's show lldp table, nv show interface lldp, "+
			"or Arista's show lldp neighbors, as text or JSON", name)
	}
	warn.Limit(f)
	return f, nil
}

// columns are where the cells of a table begin and end, by role.
type columns map[string][2]int

// heading is a column's name; two blanks or more are between two.
var heading = lazyre.New(`\S+(?: \S+)*`)

// headerOf reads the names of columns; nil where they are not those of a table of neighbours.
func headerOf(line string) columns {
	c := columns{}
	at := heading.FindAllStringIndex(line, -1)
	for i, span := range at {
		end := math.MaxInt
		if i+1 < len(at) {
			end = at[i+1][0]
		}
		if role := roles[line[span[0]:span[1]]]; role != "" {
			c[role] = [2]int{span[0], end}
		}
	}
	port, ok := c["port"]
	system, remote := c["system"], c["remote"]
	if !ok || system[0] <= port[0] || remote[0] <= system[0] {
		return nil
	}
	return c
}

// cell cuts a row. Tables align by characters, of which … has three bytes.
func (c columns) cell(row []rune, role string) string {
	span := c[role]
	return strings.TrimSpace(string(row[min(span[0], len(row)):min(span[1], len(row))]))
}

// prompt finds the switch's name before the command: admin@leaf-1:~$ show …, leaf1#show ….
var prompt = lazyre.New(`^(?:[\w.-]+@)?([A-Za-z][\w.-]*)(?::[^\s$#>]*)*\s?[$#>]\s*(?:nv )?show `)

func fromTable(text, own string) (list []neighbour, name string) {
	var c columns
	indent, rows := 0, 0
	for raw := range strings.Lines(text) {
		line := strings.TrimRight(lines.StripANSI(raw), " \t\r\n")
		if m := prompt.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			own = m[1]
		}
		if h := headerOf(line); h != nil {
			c, indent, rows = h, len(line)-len(strings.TrimLeft(line, " ")), 0
			continue
		}
		row := []rune(line)
		rule := strings.HasPrefix(strings.TrimLeft(line, " "), "--")
		if rule && rows > 0 {
			c = nil // what follows is below the table
		}
		if c == nil || len(row) <= indent || rule || len(list) >= maxNeighbours {
			continue
		}
		rows++
		n := neighbour{iface: c.cell(row, "port"), system: c.cell(row, "system"), port: c.cell(row, "remote")}
		// An interface's name is better than its address, and a switch's port better than its alias.
		if descr := c.cell(row, "descr"); !switchPort(n.port) && switchPort(descr) ||
			strings.Contains(n.port, ":") && descr != "" && !strings.Contains(descr, " ") {
			n.port = descr
		}
		n.speed = c.cell(row, "speed")
		if kind := c.cell(row, "kind"); kind != "" {
			n.known, n.bridge = true, strings.ContainsAny(kind, "BR")
		}
		list = append(list, n)
	}
	return list, own
}

// aristaJSON reads show lldp neighbors | json, or the answer of eAPI around it.
func aristaJSON(text string) ([]neighbour, error) {
	docs, err := yamldoc.Parse(text)
	if err != nil {
		return nil, err
	}
	var list []neighbour
	add := func(v *yamldoc.Value) {
		items := v.Get("lldpNeighbors").List()
		for i := range items {
			if e := &items[i]; len(list) < maxNeighbours {
				list = append(list, neighbour{
					iface: e.Get("port").Str(), system: e.Get("neighborDevice").Str(), port: e.Get("neighborPort").Str(),
				})
			}
		}
	}
	for i := range docs {
		add(&docs[i])
		for _, part := range [][]yamldoc.Value{docs[i].List(), docs[i].Get("result").List()} {
			for k := range part {
				add(&part[k])
			}
		}
	}
	return list, nil
}

// switchPort reports the name of a switch's port, as against a node's (ens1f0np0, a MAC address).
func switchPort(name string) bool { return portName.MatchString(name) }

var portName = lazyre.New(`^(?:swp?|Eth?|etp|fortyGigE|hundredGigE|Gi|Te|Hu|Fo|ge-|et-|xe-).*\d`)

// management are ports that carry no traffic of jobs.
var management = lazyre.New(`^(?:eth|Ma|(?i:mgmt))`)

// fillTable makes the switch, its neighbours, and a cable for each row.
func fillTable(f *cluster.Fragment, own string, list []neighbour) {
	f.Network.Kind = cluster.Ethernet
	switches, hosts := map[string]int{}, map[string]int{}
	box := func(name string) int {
		i, ok := switches[name]
		if !ok {
			i = len(f.Network.Switches)
			switches[name] = i
			f.Network.Switches = append(f.Network.Switches, cluster.Switch{Name: name, Tier: cluster.TierUnknown, Rail: -1})
		}
		return i
	}
	here := box(own)
	unknown := 0
	for _, n := range list {
		switch {
		case n.iface == "" || management.MatchString(n.iface):
			continue
		case n.system == "":
			unknown++
			continue
		}
		l := cluster.NetLink{A: cluster.AtSwitch(here, portNumber(n.iface)), State: cluster.Up}
		if rate, err := unit.ParseRate(n.speed + "b/s"); err == nil && n.speed != "" {
			l.Rate = cluster.Fact[unit.Rate]{Value: rate, Origin: cluster.Read, Source: TableFormat}
		}
		if n.known && n.bridge || !n.known && switchPort(n.port) {
			l.B = cluster.AtSwitch(box(n.system), portNumber(n.port))
		} else {
			h, ok := hosts[n.system]
			if !ok {
				h = len(f.Hosts)
				hosts[n.system] = h
				f.AddNode(n.system, &cluster.NodeType{})
			}
			t := f.Types[h]
			nic := t.Count(cluster.NIC)
			t.Add(cluster.Device{
				Kind: cluster.NIC, Index: nic, Parent: -1, Label: n.port, NIC: &cluster.NICInfo{Kind: cluster.Ethernet},
			})
			l.B = cluster.End{Switch: -1, Hosts: []cluster.Span{{First: h, N: 1}}, NIC: nic}
		}
		f.Network.Links = append(f.Network.Links, l)
	}
	if unknown > 0 {
		f.Warnf(0, own, "%d neighbours without a name; left out", unknown)
	}
	if len(hosts) > 0 {
		f.Network.Switches[here].Tier = cluster.Leaf
	}
}
