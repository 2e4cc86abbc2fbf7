package launch

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/internal/lazyre"
)

// maxPlan bounds plan.json, in bytes, and mostGPUs those of a node.
const (
	maxPlan  = 16 << 20
	mostGPUs = 1024
)

// Write writes the plan as Read takes it.
func (p *Plan) Write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(p)
}

// Read reads a plan. name is the file's, for errors.
func Read(name string, r io.Reader) (*Plan, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxPlan+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxPlan {
		return nil, fmt.Errorf("%s: longer than %d bytes; expected a plan.json of busbar plan --emit", name, maxPlan)
	}
	p := new(Plan)
	if err := json.Unmarshal(data, p); err != nil {
		return nil, fmt.Errorf("%s: %w; expected a plan.json of busbar plan --emit", name, err)
	}
	if err := p.Check(); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return p, nil
}

// settable are the variables of NCCL that a plan may set: those that busbar plan writes, which choose among NCCL's ways
// and the machine's own NICs. All others could name files, plugins, commands or addresses, now or in a release to come,
// and anybody may have written a plan. NCCL_TOPO_FILE is set by the rank itself, to a file beside the plan.
var settable = []string{
	"NCCL_ALGO", "NCCL_PROTO", "NCCL_CROSS_NIC", "NCCL_MIN_NCHANNELS", "NCCL_NET_GDR_LEVEL", "NCCL_IB_HCA",
	"NCCL_SOCKET_IFNAME",
}

// topologyName is what a topology file of a plan may be called: nothing outside its folder.
var topologyName = lazyre.New(`^topo-[0-9]{1,4}\.xml$`)

// hostName is what a host may be called: names end up in files that shells, launchers and YAML read.
var hostName = lazyre.New(`^[A-Za-z0-9_]([A-Za-z0-9._-]*[A-Za-z0-9_])?$`)

// plain is what values may be made of: they end up in files that shells read.
var plain = lazyre.New(`^[A-Za-z0-9_=:,^.+-]+$`)

// How long names and values may be: beside their expressions, because one that counts to a thousand
// takes every start of the program two milliseconds to compile.
const (
	longestName  = 253
	longestValue = 1000
)

// Check reports what makes a plan unusable.
func (p *Plan) Check() error {
	if p.Version != Version {
		return fmt.Errorf("version %d; expected %d", p.Version, Version)
	}
	if len(p.Nodes) == 0 {
		return fmt.Errorf("no nodes")
	}
	for i, t := range p.Types {
		if len(t.GPUs) > mostGPUs {
			return fmt.Errorf("types[%d]: %d GPUs; expected at most %d", i, len(t.GPUs), mostGPUs)
		}
		for k, g := range t.GPUs {
			if _, err := ParseCores(g.Cores); err != nil {
				return fmt.Errorf("types[%d].gpus[%d].cores: %w", i, k, err)
			}
		}
		if t.Topology != "" && !topologyName.MatchString(t.Topology) {
			return fmt.Errorf("types[%d].topology is %q; expected the name of a file beside plan.json, such as topo-0.xml", i,
				t.Topology)
		}
		if err := checkSettings(t.Settings); err != nil {
			return fmt.Errorf("types[%d].%w", i, err)
		}
	}
	for i, n := range p.Nodes {
		if n.Type < 0 || n.Type >= len(p.Types) {
			return fmt.Errorf("nodes[%d].type is %d; there are %d types", i, n.Type, len(p.Types))
		}
		if len(n.GPUs) == 0 || len(n.GPUs) > mostGPUs {
			return fmt.Errorf("nodes[%d]: %d GPUs; expected 1 to %d", i, len(n.GPUs), mostGPUs)
		}
		for _, g := range n.GPUs {
			if g < 0 || g >= len(p.Types[n.Type].GPUs) {
				return fmt.Errorf("nodes[%d].gpus has %d; type %q has %d GPUs", i, g, p.Types[n.Type].Name,
					len(p.Types[n.Type].GPUs))
			}
		}
	}
	hosts, err := p.Hosts()
	if err != nil {
		return err
	}
	below := 0
	for i, n := range p.Leaves {
		if n < 1 || n > len(hosts)-below {
			return fmt.Errorf("leaves[%d] is %d; the plan has %d hosts", i, n, len(hosts))
		}
		below += n
	}
	if len(p.Leaves) > 0 && below != len(hosts) {
		return fmt.Errorf("leaves have %d hosts; the plan has %d", below, len(hosts))
	}
	seen := make(map[string]bool, len(hosts))
	for i, h := range hosts {
		low := strings.ToLower(h.Name)
		if seen[low] {
			return fmt.Errorf("host %d is %s again; expected every host once", i, h.Name)
		}
		seen[low] = true
		if len(h.Name) > longestName || !hostName.MatchString(h.Name) {
			return fmt.Errorf("host %d is called %.300q; expected a host's name: letters, digits, dots and dashes", i, h.Name)
		}
	}
	if err := checkSettings(p.Try); err != nil {
		return fmt.Errorf("try: %w", err)
	}
	return checkSettings(p.Settings)
}

func checkSettings(list []Setting) error {
	for i, s := range list {
		if !slices.Contains(settable, s.Name) {
			return fmt.Errorf("settings[%d].name is %.80q; a plan may set %s; set others in the job's own environment, which "+
				"stays", i, s.Name, strings.Join(settable, ", "))
		}
		if len(s.Value) > longestValue || !plain.MatchString(s.Value) {
			return fmt.Errorf("settings[%d]: the value of %s is %q; expected letters, digits and _=:,^.+-", i, s.Name, s.Value)
		}
	}
	return nil
}
