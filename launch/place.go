package launch

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/k8s"
	"busbar.dev/internal/natural"
)

// Request is the nodes that a job asks its scheduler for.
type Request struct {
	Hosts   []string // in the order of ranks
	GPUs    int      // per node
	Leaves  int      // that the nodes hang on
	Level   cluster.Tier
	Racks   int  // NVLink domains of several hosts that they are in; 0 where there are none
	Segment int  // the most nodes that every rack has a multiple of
	Require bool // other nodes are predicted to be slower, beyond doubt
}

// RequestForms are the forms that Write knows.
func RequestForms() []string {
	return []string{"nodelist", "slurm", "kueue", "jobset", "aws", "gcp", "azure", "oci"}
}

// Write writes the request in a form: nodelist (a name per line, in the order of ranks), slurm, kueue (annotations of a
// pod template; Kueue, Topology Aware Scheduling, 2026), jobset (a replicated job with affinity to the nodes), or a
// cloud's placement, for nodes that are still to be made.
func (r *Request) Write(w io.Writer, form string) error {
	for _, h := range r.Hosts {
		if !hostName.MatchString(h) {
			return fmt.Errorf("a node is called %.300q; expected a host's name: letters, digits, dots and dashes", h)
		}
	}
	switch form {
	case "kueue":
		if r.LevelLabel() == "" {
			return fmt.Errorf("no switch is known that holds all nodes; Kueue asks for one by its label")
		}
	case "nodelist", "slurm", "jobset":
	case "aws", "gcp", "azure", "oci":
		return r.cloud(w, form)
	default:
		return fmt.Errorf("no form %q; expected one of %s", form, strings.Join(RequestForms(), ", "))
	}
	return templates().ExecuteTemplate(w, "place-"+form+".tmpl", r)
}

// sorted are the hosts by their names.
func (r *Request) sorted() []string { return natural.Sort(slices.Clone(r.Hosts)) }

// NodeList is the hosts as Slurm writes them.
func (r *Request) NodeList() string { return cluster.FormatSlurmHosts(r.sorted()) }

// InOrder tells that Slurm's order of the hosts is the order of ranks.
func (r *Request) InOrder() bool { return slices.Equal(r.Hosts, r.sorted()) }

// LevelLabel is the label of the lowest switches, or NVLink domain, that hold all nodes; "" where none does.
func (r *Request) LevelLabel() string {
	switch {
	case r.Racks == 1:
		return k8s.Accelerator
	case r.Level >= cluster.Leaf && r.Level <= cluster.Core:
		return k8s.Fabric(r.Level)
	}
	return ""
}

// cloud writes what to ask a cloud for. Sources, 2026: Amazon EC2, placement groups; Google Compute Engine,
// resourcePolicies; Azure, virtual machine scale sets and proximity placement groups; Oracle, cluster networks.
func (r *Request) cloud(w io.Writer, name string) error {
	type object = map[string]any
	n := len(r.Hosts)
	var d object
	switch name {
	case "aws":
		d = object{
			"CreatePlacementGroup": object{"GroupName": "busbar-job", "Strategy": "cluster"},
			"RunInstances":         object{"MinCount": n, "MaxCount": n, "Placement": object{"GroupName": "busbar-job"}},
		}
	case "gcp":
		distance := min(int(r.Level)+1, 3)
		if r.Level == cluster.TierUnknown {
			distance = 3
		}
		d = object{
			"name":                 "busbar-job",
			"groupPlacementPolicy": object{"collocation": "COLLOCATED", "vmCount": n, "maxDistance": distance},
		}
	case "azure":
		d = object{
			"proximityPlacementGroup": object{"name": "busbar-job", "proximityPlacementGroupType": "Standard"},
			"virtualMachineScaleSet": object{
				"sku":        object{"capacity": n},
				"properties": object{"singlePlacementGroup": n <= 100, "platformFaultDomainCount": 1, "overprovision": false},
			},
		}
	case "oci":
		d = object{
			"instancePools":          []object{{"size": n}},
			"placementConfiguration": object{"placementConstraint": "PACKED_DISTRIBUTION_MULTI_BLOCK"},
		}
		if r.Level <= cluster.Spine && r.Level >= cluster.Leaf {
			d["placementConfiguration"] = object{"placementConstraint": "SINGLE_BLOCK"}
		}
	}
	enc := json.NewEncoder(w)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}
