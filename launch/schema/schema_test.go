package schema

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	network "k8s.io/api/networking/v1"
	rbac "k8s.io/api/rbac/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	jobset "sigs.k8s.io/jobset/api/jobset/v1alpha2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/yaml"

	"busbar.dev/hardware"
	"busbar.dev/input/k8s"
)

// decode reads a document as the API server does with strict validation: fields that the type does not
// have, and fields given twice, are errors.
func decode(doc string) (any, error) {
	var kind meta.TypeMeta
	if err := yaml.Unmarshal([]byte(doc), &kind); err != nil {
		return nil, err
	}
	var x any
	switch kind.APIVersion + "/" + kind.Kind {
	case "v1/Service":
		x = new(core.Service)
	case "apps/v1/StatefulSet":
		x = new(apps.StatefulSet)
	case "apps/v1/DaemonSet":
		x = new(apps.DaemonSet)
	case "v1/Pod":
		x = new(core.Pod)
	case "v1/Node":
		x = new(core.Node)
	case "v1/Secret":
		x = new(core.Secret)
	case "v1/ConfigMap":
		x = new(core.ConfigMap)
	case "v1/ServiceAccount":
		x = new(core.ServiceAccount)
	case "rbac.authorization.k8s.io/v1/ClusterRole":
		x = new(rbac.ClusterRole)
	case "rbac.authorization.k8s.io/v1/ClusterRoleBinding":
		x = new(rbac.ClusterRoleBinding)
	case "rbac.authorization.k8s.io/v1/Role":
		x = new(rbac.Role)
	case "rbac.authorization.k8s.io/v1/RoleBinding":
		x = new(rbac.RoleBinding)
	case "networking.k8s.io/v1/NetworkPolicy":
		x = new(network.NetworkPolicy)
	case monitoring.SchemeGroupVersion.String() + "/ServiceMonitor":
		x = new(monitoring.ServiceMonitor)
	case kueue.GroupVersion.String() + "/Topology":
		x = new(kueue.Topology)
	case "batch/v1/Job":
		x = new(batch.Job)
	case jobset.GroupVersion.String() + "/JobSet":
		x = new(jobset.JobSet)
	default:
		return nil, fmt.Errorf("%s %s", kind.APIVersion, kind.Kind)
	}
	return x, yaml.UnmarshalStrict([]byte(doc), x)
}

func TestManifests(t *testing.T) {
	files, err := filepath.Glob("../testdata/manifests/*.yaml")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d manifests, %v", len(files), err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, doc := range strings.Split(string(text), "\n---\n") {
			x, err := decode(doc)
			if err != nil {
				t.Errorf("%s: %v", file, err)
				continue
			}
			switch x := x.(type) {
			case *batch.Job:
				checkJob(t, file, &x.Spec, !strings.Contains(file, "placeholder"))
			case *jobset.JobSet:
				checkSet(t, file, x)
			}
		}
	}
}

// TestPlacement holds what place writes to the types of a JobSet and of a pod template, and its affinity and labels to
// what Kubernetes asks beyond them.
func TestPlacement(t *testing.T) {
	text, err := os.ReadFile("../testdata/place/jobset.yaml")
	if err != nil {
		t.Fatal(err)
	}
	x, err := decode(string(text))
	if err != nil {
		t.Fatal(err)
	}
	job := x.(*jobset.JobSet).Spec.ReplicatedJobs[0].Template.Spec
	need := job.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms[0].
		MatchExpressions[0]
	if need.Key != core.LabelHostname || need.Operator != core.NodeSelectorOpIn ||
		int(*job.Parallelism) != len(need.Values) {
		t.Errorf("%+v", need)
	}
	for _, v := range need.Values {
		if bad := validation.IsValidLabelValue(v); bad != nil {
			t.Errorf("%s: %v", v, bad)
		}
	}
	if text, err = os.ReadFile("../testdata/place/kueue.yaml"); err != nil {
		t.Fatal(err)
	}
	var pod core.PodTemplateSpec
	if err := yaml.UnmarshalStrict(text, &pod); err != nil || len(pod.Annotations) != 1 {
		t.Fatalf("%+v, %v", pod, err)
	}
	for key, label := range pod.Annotations {
		if bad := append(validation.IsQualifiedName(key), validation.IsQualifiedName(label)...); bad != nil {
			t.Errorf("%s: %s: %v", key, label, bad)
		}
	}
}

// checkJob holds a job to what Kubernetes' own validation asks beyond the types.
func checkJob(t *testing.T, file string, j *batch.JobSpec, named bool) {
	t.Helper()
	if *j.CompletionMode != batch.IndexedCompletion || *j.Completions != *j.Parallelism || *j.Completions < 1 {
		t.Errorf("%s: %+v", file, j)
	}
	p := &j.Template.Spec
	if p.RestartPolicy != core.RestartPolicyNever {
		t.Errorf("%s: restartPolicy %q; jobs take Never or OnFailure", file, p.RestartPolicy)
	}
	volumes := map[string]bool{}
	for _, v := range p.Volumes {
		volumes[v.Name] = true
	}
	for _, c := range append(p.InitContainers, p.Containers...) {
		for _, m := range c.VolumeMounts {
			if !volumes[m.Name] {
				t.Errorf("%s: %s mounts %s, which is no volume", file, c.Name, m.Name)
			}
		}
		if c.Image == "" || len(c.Command) == 0 {
			t.Errorf("%s: %s has no image or command", file, c.Name)
		}
	}
	gpus := p.Containers[0].Resources.Limits["nvidia.com/gpu"]
	if gpus.Value() != 2 {
		t.Errorf("%s: %v GPUs", file, gpus.String())
	}
	if has := p.Affinity != nil && p.Affinity.NodeAffinity != nil; has != named {
		t.Errorf("%s: hosts are kept to: %v, want %v", file, has, named)
	}
}

// checkSet holds a set to the same, and its jobs to the ranks of their leaves.
func checkSet(t *testing.T, file string, s *jobset.JobSet) {
	t.Helper()
	placeholder := strings.Contains(file, "placeholder")
	if got := s.Annotations[jobset.ExclusiveKey]; (got != "") != placeholder {
		t.Errorf("%s: exclusive topology %q", file, got)
	}
	first := int32(0)
	for i, r := range s.Spec.ReplicatedJobs {
		checkJob(t, file, &r.Template.Spec, !placeholder)
		if r.Name != fmt.Sprintf("leaf%d", i) || r.Replicas != 1 {
			t.Errorf("%s: job %d is %s, %d times", file, i, r.Name, r.Replicas)
		}
		command := r.Template.Spec.Template.Spec.Containers[0].Command
		if want := fmt.Sprintf("NODE=$$((%d + JOB_COMPLETION_INDEX));", first); !strings.HasPrefix(command[2], want) {
			t.Errorf("%s: %s; want %s", file, command[2], want)
		}
		first += *r.Template.Spec.Completions
	}
	if len(s.Spec.ReplicatedJobs) != 2 {
		t.Errorf("%s: %d jobs", file, len(s.Spec.ReplicatedJobs))
	}
}

// Strict means strict: a slip of the pen is refused.
func TestStrict(t *testing.T) {
	for _, doc := range []string{
		"apiVersion: batch/v1\nkind: Job\nspec:\n  completion: 2\n",
		"apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nspec:\n  replicatedJob: []\n",
		"apiVersion: v1\nkind: Service\nspec:\n  clusterIP: None\n  clusterIP: None\n",
	} {
		if _, err := decode(doc); err == nil {
			t.Errorf("%q is taken", doc)
		}
	}
}

// TestLabels holds what map writes of nodes, and of levels for Kueue, to their types and to what the API server asks of
// labels.
func TestLabels(t *testing.T) {
	c, err := hardware.Preset("gb200-nvl72", 3)
	if err != nil {
		t.Fatal(err)
	}
	for i := range c.Network.Switches {
		c.Network.Switches[i].Name = strings.Repeat("a-long-name;of a switch", 4) + fmt.Sprint(i)
	}
	var nodes, levels bytes.Buffer
	if err := errors.Join(k8s.WriteLabels(&nodes, c), k8s.WriteTopology(&levels, c)); err != nil {
		t.Fatal(err)
	}
	x, err := decode(levels.String())
	if err != nil {
		t.Fatal(err)
	}
	of := x.(*kueue.Topology).Spec.Levels
	if n := len(of); n < 3 || n > 16 || of[n-1].NodeLabel != core.LabelHostname {
		t.Errorf("levels %+v", of)
	}
	docs := strings.Split(nodes.String(), "\n---\n")[1:]
	if len(docs) != 3*18 {
		t.Errorf("%d nodes", len(docs))
	}
	for _, doc := range docs {
		x, err := decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		labels := x.(*core.Node).Labels
		for _, l := range of[:len(of)-1] {
			if labels[l.NodeLabel] == "" {
				t.Errorf("%v lacks %s", labels, l.NodeLabel)
			}
		}
		for k, v := range labels {
			if bad := append(validation.IsQualifiedName(k), validation.IsValidLabelValue(v)...); bad != nil {
				t.Errorf("%s=%s: %v", k, v, bad)
			}
		}
	}
}
