package schema

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// render is what helm template prints for values.
func render(values map[string]any) ([]string, error) {
	c, err := loader.Load("../../packaging/chart")
	if err != nil {
		return nil, err
	}
	if err := c.Validate(); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(c, values,
		chartutil.ReleaseOptions{Name: "fleet", Namespace: "gpu", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, err
	}
	var docs []string
	for name, text := range files {
		for _, doc := range strings.Split(text, "\n---\n") {
			if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(doc) != "" {
				docs = append(docs, doc)
			}
		}
	}
	return docs, nil
}

// TestChart renders the chart as helm template does and holds every object to the types of Kubernetes.
func TestChart(t *testing.T) {
	for _, tt := range []struct {
		name   string
		values map[string]any
		kinds  int
		has    []string
	}{
		{"defaults", nil, 2, []string{"--tls-self-signed", "busbar:0.0.0"}},
		{
			"agents",
			map[string]any{"agent": map[string]any{"nodes": []any{"gpu01", "gpu02.example"}}},
			4,
			[]string{"--join=tls://fleet-server.gpu.svc:7642"},
		},
		{"agents alone", map[string]any{
			"server": map[string]any{"enabled": false},
			"agent": map[string]any{
				"nodes": []any{"gpu01"}, "join": "tls://head:7642", "caSecret": "ca", "args": []any{"--bind=ib0"},
			},
		}, 1, []string{"--join=tls://head:7642", "--tls-ca=/ca/ca.pem", "--bind=ib0"}},
		{"certificate", map[string]any{
			"image": map[string]any{"repository": "registry.example/busbar", "tag": "1"},
			"server": map[string]any{
				"tlsSecret": "page", "hosts": []any{"busbar.example"}, "storage": map[string]any{"className": "fast"},
			},
		}, 2, []string{"--tls-cert=/tls/tls.crt", "--host=busbar.example", "registry.example/busbar:1", "fast"}},
	} {
		docs, err := render(tt.values)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		if len(docs) != tt.kinds {
			t.Errorf("%s: %d objects, want %d", tt.name, len(docs), tt.kinds)
		}
		for _, want := range tt.has {
			if !slices.ContainsFunc(docs, func(d string) bool { return strings.Contains(d, want) }) {
				t.Errorf("%s: no %s", tt.name, want)
			}
		}
		for _, doc := range docs {
			if err := checkObject(doc); err != nil {
				t.Errorf("%s: %v\n%s", tt.name, err, doc)
			}
		}
	}
}

// TestChartSecrets holds every pod of an agent to one node by its name, and to that node's secret.
func TestChartSecrets(t *testing.T) {
	nodes := []any{"gpu01", "gpu02.example", "gpu03"}
	docs, err := render(map[string]any{
		"server": map[string]any{"enabled": false}, "agent": map[string]any{"nodes": nodes, "caSecret": "ca"},
	})
	if err != nil || len(docs) != len(nodes) {
		t.Fatalf("%d objects, %v", len(docs), err)
	}
	var names []any
	for _, doc := range docs {
		x, err := decode(doc)
		if err != nil {
			t.Fatal(err)
		}
		set := x.(*apps.DaemonSet)
		node := set.Spec.Selector.MatchLabels["busbar.dev/node"]
		names = append(names, node)
		on := set.Spec.Template.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
		want := []core.NodeSelectorTerm{{MatchFields: []core.NodeSelectorRequirement{
			{Key: "metadata.name", Operator: core.NodeSelectorOpIn, Values: []string{node}},
		}}}
		if !reflect.DeepEqual(on, want) {
			t.Errorf("%s runs on %+v", node, on)
		}
		for _, v := range set.Spec.Template.Spec.Volumes {
			if v.Secret != nil && v.Secret.SecretName != "busbar-node-"+node && v.Secret.SecretName != "ca" ||
				v.Projected != nil || v.HostPath != nil && v.HostPath.Path != "/var/lib/busbar/agent" {
				t.Errorf("%s mounts %+v", node, v)
			}
		}
		for _, c := range set.Spec.Template.Spec.Containers {
			if len(c.EnvFrom) > 0 || len(c.Env) > 0 {
				t.Errorf("%s has %+v %+v", node, c.EnvFrom, c.Env)
			}
		}
	}
	slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
	if !slices.Equal(names, nodes) {
		t.Errorf("agents on %v; want %v", names, nodes)
	}
}

// checkObject holds an object to its type and to what the API server asks beyond it.
func checkObject(doc string) error {
	x, err := decode(doc)
	if err != nil {
		return err
	}
	switch x := x.(type) {
	case *apps.StatefulSet:
		volumes := []string{x.Spec.VolumeClaimTemplates[0].Name}
		return checkPod(x.Spec.Selector.MatchLabels, &x.Spec.Template, volumes)
	case *apps.DaemonSet:
		return checkPod(x.Spec.Selector.MatchLabels, &x.Spec.Template, nil)
	case *core.Service:
		if len(x.Spec.Selector) == 0 || len(x.Spec.Ports) != 2 {
			return fmt.Errorf("service %+v", x.Spec)
		}
	}
	return nil
}

func checkPod(selector map[string]string, p *core.PodTemplateSpec, volumes []string) error {
	for k, v := range selector {
		if p.Labels[k] != v {
			return fmt.Errorf("the selector's %s=%s is no label of the pods", k, v)
		}
	}
	for _, v := range p.Spec.Volumes {
		volumes = append(volumes, v.Name)
	}
	for _, c := range p.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if !slices.Contains(volumes, m.Name) {
				return fmt.Errorf("%s mounts %s, which is no volume", c.Name, m.Name)
			}
		}
		if s := c.SecurityContext; s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation ||
			!*s.ReadOnlyRootFilesystem {
			return fmt.Errorf("%s may do more than it needs", c.Name)
		}
		if c.Image == "" || c.Resources.Limits.Memory().IsZero() {
			return fmt.Errorf("%s has no image or no memory limit", c.Name)
		}
	}
	return nil
}
