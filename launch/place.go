package launch

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
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

// Write writes the request in a form: nodelist (a name per line, in the order of ranks), slurm, kueue, jobset, or a
// cloud's placement, for nodes that are still to be made.
func (r *Request) Write(w io.Writer, form string) error {
	switch form {
	case "nodelist":
		_, err := fmt.Fprintln(w, strings.Join(r.Hosts, "\n"))
		return err
	case "slurm":
		return r.slurm(w)
	case "kueue":
		return r.kueue(w)
	case "jobset":
		return r.jobSet(w)
	case "aws", "gcp", "azure", "oci":
		return r.cloud(w, form)
	}
	return fmt.Errorf("no form %q; expected one of %s", form, strings.Join(RequestForms(), ", "))
}

func (r *Request) slurm(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "#SBATCH --nodes=%d\n#SBATCH --ntasks-per-node=%d\n#SBATCH --gpus-per-node=%d\n#SBATCH "+
		"--nodelist=%s\n", len(r.Hosts), r.GPUs, r.GPUs, cluster.FormatSlurmHosts(natural.Sort(slices.Clone(r.Hosts))))
	if r.Racks > 0 {
		fmt.Fprintf(&b, "#SBATCH --segment=%d\n", r.Segment)
	} else if r.Leaves > 0 && r.Level != cluster.TierUnknown {
		fmt.Fprintf(&b, "#SBATCH --switches=%d\n", r.Leaves)
	}
	if !slices.Equal(r.Hosts, natural.Sort(slices.Clone(r.Hosts))) {
		b.WriteString("# Ranks in the order that was priced: srun --distribution=arbitrary with SLURM_HOSTFILE,\n# a file " +
			"with every name once per task; busbar place -o nodelist=FILE writes the names.\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// levelLabel is the label of the lowest switches, or NVLink domain, that hold all nodes; "" where none does.
func (r *Request) levelLabel() string {
	switch {
	case r.Racks == 1:
		return "network.topology.nvidia.com/accelerator"
	case r.Level >= cluster.Leaf && r.Level <= cluster.Core:
		return "network.topology.nvidia.com/" + r.Level.String()
	}
	return ""
}

// kueue writes annotations of a pod template. Source: Kueue, Topology Aware Scheduling, 2026.
func (r *Request) kueue(w io.Writer) error {
	label := r.levelLabel()
	if label == "" {
		return fmt.Errorf("no switch is known that holds all nodes; Kueue asks for one by its label")
	}
	word := "preferred"
	if r.Require {
		word = "required"
	}
	_, err := fmt.Fprintf(w, "# In the pod template of the job; busbar map -o kube writes the labels of nodes.\n"+
		"metadata:\n  annotations:\n    kueue.x-k8s.io/podset-%s-topology: %s\n", word, label)
	return err
}

// jobSet writes a replicated job with affinity to the nodes.
func (r *Request) jobSet(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, `# The part of a JobSet that places its pods.
apiVersion: jobset.x-k8s.io/v1alpha2
kind: JobSet
spec:
  replicatedJobs:
  - name: worker
    replicas: 1
    template:
      spec:
        parallelism: %d
        completions: %d
        completionMode: Indexed
        template:
          spec:
            affinity:
              nodeAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  nodeSelectorTerms:
                  - matchExpressions:
                    - key: kubernetes.io/hostname
                      operator: In
                      values:
`, len(r.Hosts), len(r.Hosts))
	for _, h := range r.Hosts {
		fmt.Fprintf(&b, "                      - %q\n", strings.ToLower(h))
	}
	_, err := io.WriteString(w, b.String())
	return err
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
