// Package cloud reads what clouds say about where instances are: AWS's describe-instance-topology, Google's instances
// with their physical host topology, Oracle's bare metal hosts of a capacity topology, Azure's virtual machines with
// their scale set and proximity placement group. Network nodes and blocks become switches, the farthest from the
// instances on top: they say who is near whom, not cables. Placement groups, capacity blocks and scale sets become
// groupings.
package cloud

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/switchtree"
	"busbar.dev/internal/yamldoc"
)

// Format is what fragments carry.
const Format = "cloud instance topology"

// vendor is how a cloud's instances are recognised and read.
type vendor struct {
	name  string
	marks []string // words that its text has
	list  []string // where the instances are; the first key that is there
	// read gives the name of an instance, its switches from the top down, its groupings, and its type.
	read func(v *yamldoc.Value) instance
}

type instance struct {
	name     string
	switches []string
	groups   []string
	typ      string
}

// Field names. Sources: Amazon EC2 API Reference, InstanceTopology; Compute Engine API,
// ResourceStatusPhysicalHostTopology; OCI Core Services API, ComputeBareMetalHostSummary; Azure Compute API,
// VirtualMachine; all 2026.
var vendors = []vendor{
	{
		name: "AWS", marks: []string{"\"NetworkNodes\"", "\"InstanceId\""}, list: []string{"Instances"},
		read: func(v *yamldoc.Value) instance {
			return instance{
				name: str(v, "InstanceId"), switches: v.Get("NetworkNodes").Texts(), typ: str(v, "InstanceType"),
				groups: some(str(v, "CapacityBlockId"), str(v, "GroupName")),
			}
		},
	},
	{
		name: "Google", marks: []string{"physicalHostTopology"}, list: []string{"items"},
		read: func(v *yamldoc.Value) instance {
			at := v.Get("resourceStatus", "physicalHostTopology")
			typ := str(v, "machineType")
			return instance{
				name: str(v, "name"), switches: some(at.Get("cluster").Str(), at.Get("block").Str(), at.Get("subblock").Str()),
				typ: typ[strings.LastIndexByte(typ, '/')+1:],
			}
		},
	},
	{
		name: "Oracle", marks: []string{"nstance"}, list: []string{"data", "items"},
		read: func(v *yamldoc.Value) instance {
			key := func(camel, dashed string) string { return cmp.Or(str(v, camel), str(v, dashed)) }
			return instance{
				name: key("instanceId", "instance-id"),
				switches: some(key("computeHpcIslandId", "compute-hpc-island-id"),
					key("computeNetworkBlockId", "compute-network-block-id"), key("computeLocalBlockId", "compute-local-block-id")),
				typ: key("instanceShape", "instance-shape"),
			}
		},
	},
	{
		name: "Azure", marks: []string{"Microsoft.Compute/virtualMachines", "vmSize"}, list: []string{"value"},
		read: func(v *yamldoc.Value) instance {
			at := cmp.Or(v.Get("properties"), v)
			last := func(key string) string {
				id := at.Get(key, "id").Str()
				return id[strings.LastIndexByte(id, '/')+1:]
			}
			return instance{
				name: str(v, "name"), groups: some(last("virtualMachineScaleSet"), last("proximityPlacementGroup"),
					last("availabilitySet")), typ: at.Get("hardwareProfile", "vmSize").Str(),
			}
		},
	},
}

func str(v *yamldoc.Value, key string) string { return v.Get(key).Str() }

func some(list ...string) []string {
	return slices.DeleteFunc(list, func(s string) bool { return s == "" })
}

// vendorOf recognises a text.
func vendorOf(text string) *vendor {
	start := strings.TrimLeft(text, " \t\r\n\ufeff")
	if start == "" || start[0] != '{' && start[0] != '[' {
		return nil
	}
	for i := range vendors {
		found := true
		for _, m := range vendors[i].marks {
			found = found && strings.Contains(text, m)
		}
		if vendors[i].name == "Oracle" {
			found = strings.Contains(text, "computeNetworkBlockId") || strings.Contains(text, "compute-network-block-id")
		}
		if found {
			return &vendors[i]
		}
	}
	return nil
}

// Match reports whether the text is a cloud's list of instances with where they are.
func Match(data []byte) bool { return vendorOf(string(data)) != nil }

// Read reads such a list.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	data, err := io.ReadAll(io.LimitReader(r, yamldoc.MaxBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	v := vendorOf(string(data))
	if v == nil {
		return nil, fmt.Errorf("%s: no instance with a topology; expected JSON of aws ec2 describe-instance-topology, "+
			"gcloud compute instances list, oci compute-bare-metal-host list or az vm list", name)
	}
	docs, err := yamldoc.Parse(string(data))
	if err != nil {
		return nil, yamldoc.In(name, err)
	}
	x := reader{f: &cluster.Fragment{Format: Format, Source: name}, v: v, tree: switchtree.New(), types: map[string]int{}}
	x.tree.Overlap = true
	for i := range docs {
		for _, list := range v.instances(&docs[i]) {
			for k := range list {
				x.addInstance(&list[k])
			}
		}
	}
	if len(x.tree.Hosts) == 0 {
		return nil, fmt.Errorf("%s: no instance of %s with a name in it", name, v.name)
	}
	if err := x.tree.Fill(x.f); err != nil {
		return nil, err
	}
	if x.bare > 0 {
		x.f.Warnf(0, "", "%d of %d instances say nothing of where they are; they are not running, or their type is not "+
			"supported", x.bare, len(x.tree.Hosts))
	}
	warn.Limit(x.f)
	return x.f, nil
}

// instances are the lists of instances in a document.
func (v *vendor) instances(d *yamldoc.Value) [][]yamldoc.Value {
	if d.Kind == yamldoc.List {
		return [][]yamldoc.Value{d.List()}
	}
	for _, key := range v.list {
		at := d.Get(key)
		if list := at.List(); list != nil {
			return [][]yamldoc.Value{list}
		}
		if list := at.Get("items").List(); list != nil {
			return [][]yamldoc.Value{list}
		}
	}
	return nil
}

type reader struct {
	f     *cluster.Fragment
	v     *vendor
	tree  *switchtree.Tree
	types map[string]int
	bare  int
}

// addInstance puts an instance below its switches and into its groupings. Names of network nodes are unique only below
// those above.
func (x *reader) addInstance(v *yamldoc.Value) {
	in := x.v.read(v)
	if in.name == "" || len(x.tree.Hosts) >= cluster.MaxHosts || len(x.tree.Switches)+8 > cluster.MaxSwitches {
		return
	}
	h := x.tree.Host(in.name)
	if len(in.switches)+len(in.groups) == 0 {
		x.bare++
	}
	slices.Reverse(in.switches)
	levels := make([]switchtree.Level, len(in.switches))
	for i, name := range in.switches {
		levels[i] = switchtree.Level{Name: name, Tier: i}
	}
	x.tree.Place(h, max(v.LineNum(), 1), levels)
	for _, g := range in.groups {
		x.tree.Attach(x.tree.Switch(g, true), h)
	}
	if in.typ != "" && x.types[in.typ] == 0 {
		x.types[in.typ] = 1
		if len(x.types) == 1 {
			x.f.Warnf(v.LineNum(), in.name, "instances of type %s; give what they are as HOSTLIST=PRESET (busbar list presets)",
				in.typ)
		}
	}
}
