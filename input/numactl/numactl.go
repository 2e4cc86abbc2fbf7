// Package numactl reads numactl --hardware: the NUMA domains of a node, their cores and their memory. Distances say
// nothing of how fast the way between two domains is, and are passed over.
package numactl

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/input/internal/num"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/unit"
)

const format = "numactl --hardware"

var (
	head = lazyre.New(`^available: \d+ nodes? \(`)
	row  = lazyre.New(`^node (\d{1,4}) (?:cpus:([\d ]*)|size: (\d+) MB)`)
)

// Match reports whether numactl's list is somewhere in the text.
func Match(data []byte) bool { return lines.Find(data, "available: ", head.MatchString) }

// Read reads numactl's lists; each is one of a node without a name.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	f := &cluster.Fragment{Format: format, Source: name}
	var domains []board.Domain
	begun, at := 0, map[string]int{}
	finish := func() {
		if len(domains) > 0 {
			t := &cluster.NodeType{Name: "node"}
			if h := board.NewHost(t, format, nil, domains); h.Left > 0 {
				f.Warnf(begun, "", "%d NUMA nodes more than any machine has; left out", h.Left)
			}
			f.AddNode("", t)
		}
	}
	err := lines.Each(name, r, func(line int, text string) error {
		if text = strings.TrimSpace(text); head.MatchString(text) {
			finish()
			begun, domains, at = line, nil, map[string]int{}
		}
		m := row.FindStringSubmatch(text)
		if m == nil || begun == 0 {
			return nil
		}
		i, ok := at[m[1]]
		if !ok {
			i, at[m[1]] = len(domains), len(domains)
			domains = append(domains, board.Domain{Index: num.Int(m[1])})
		}
		if m[3] != "" {
			mib, _ := strconv.ParseInt(m[3], 10, 32) // MB in its words
			if domains[i].Memory = unit.Bytes(mib) * unit.MiB; mib == 0 && !domains[i].CPUs.Empty() {
				warn.Found(f, line, "numa"+m[1], "numa-no-memory", "warn",
					"see which DIMMs the firmware counts (dmidecode -t memory); reseat or replace the others",
					"cores without memory of their own: what runs there uses that of another NUMA node")
			}
			return nil
		}
		cores, err := board.ParseList(strings.Join(strings.Fields(m[2]), ","))
		if domains[i].CPUs = cores; err != nil {
			return fmt.Errorf("%s:%d: %w; expected the output of numactl --hardware", name, line, err)
		}
		return nil
	})
	if finish(); err == nil && len(f.Hosts) == 0 {
		err = fmt.Errorf("%s: no NUMA nodes; expected the output of numactl --hardware, such as node 0 cpus: 0 1 2", name)
	}
	return f, err
}
