package schema

import (
	"crypto/tls"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"

	"busbar.dev/fleet/client"
)

// chartDir is the chart.
const chartDir = "../../packaging/chart"

// render is what helm template prints for values, and what helm install says.
func render(values map[string]any) (docs []string, notes string, err error) {
	c, err := loader.Load(chartDir)
	if err != nil {
		return nil, "", err
	}
	if err := c.Validate(); err != nil {
		return nil, "", err
	}
	all, err := chartutil.ToRenderValues(c, values,
		chartutil.ReleaseOptions{Name: "fleet", Namespace: "gpu", Revision: 1, IsInstall: true}, nil)
	if err != nil {
		return nil, "", err
	}
	files, err := engine.Engine{Strict: true}.Render(c, all)
	if err != nil {
		return nil, "", err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if strings.HasSuffix(name, "NOTES.txt") {
			notes = files[name]
		}
		for _, doc := range strings.Split("\n"+files[name], "\n---\n") {
			if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(doc) != "" {
				docs = append(docs, doc)
			}
		}
	}
	return docs, notes, nil
}

type values = map[string]any

// installs are values that people may give, with the objects that the chart has for them.
var installs = []struct {
	name   string
	values values
	kinds  string
	has    []string
	lacks  []string
}{
	{
		"defaults", nil,
		"ClusterRole ClusterRoleBinding ConfigMap DaemonSet Pod Role RoleBinding Secret Service ServiceAccount " +
			"ServiceAccount StatefulSet",
		[]string{
			"--tls-cert=/tls/tls.crt", "busbar:0.0.0", "busbar-node:0.0.0", "--kube-agents=gpu/fleet-agent", "--kube-conditions",
			"--kube-token=/token/token", "--join=tls://fleet-server.gpu.svc:7642", "--tls-ca=/ca/ca.pem",
			"--server=https://fleet-server.gpu.svc:7641",
		},
		[]string{"busbar.dev/node", "--creds"},
	},
	{
		"agents with secrets of their own",
		values{"agent": values{"nodes": []any{"gpu01", "gpu02.example"}}, "server": values{"conditions": false}},
		"ClusterRole ClusterRoleBinding ConfigMap DaemonSet DaemonSet Pod Secret Service ServiceAccount ServiceAccount " +
			"StatefulSet",
		[]string{"--creds=/creds/node.creds", "busbar-node-gpu02.example"},
		[]string{"--kube-token", "nodes/status"},
	},
	{
		"agents alone",
		values{
			"server": values{"enabled": false},
			"agent": values{
				"join": "tls://head:7642", "caSecret": "ca", "args": []any{"--bind=ib0"}, "hostPath": "/var/lib/busbar",
				"runtimeClassName": "nvidia",
			},
			"imagePullSecrets": []any{values{"name": "pull"}},
		},
		"DaemonSet ServiceAccount ServiceAccount",
		[]string{"--join=tls://head:7642", "--tls-ca=/ca/ca.pem", "--bind=ib0", "path: \"/var/lib/busbar\""},
		nil,
	},
	{
		"certificate, policy and monitor",
		values{
			"image": values{"repository": "registry.example/busbar", "tag": "1"}, "agent": values{"enabled": false},
			"server": values{
				"tlsSecret": "page", "hosts": []any{"busbar.example"}, "storage": values{"className": "fast"}, "conditions": false,
			},
			"serviceMonitor": values{"enabled": true, "tokenSecret": "prometheus", "labels": values{"release": "monitoring"}},
			"networkPolicy":  values{"enabled": true, "from": []any{values{"ipBlock": values{"cidr": "10.0.0.0/8"}}}},
		},
		"NetworkPolicy Pod Service ServiceAccount ServiceAccount ServiceMonitor StatefulSet",
		[]string{"--host=busbar.example", "registry.example/busbar:1", "fast", "honorLabels: true", "secretName: \"page\""},
		[]string{"--kube", "fleet-server-ca"},
	},
	{
		"everything that others make",
		values{
			"rbac": values{"create": false}, "serviceAccount": values{"create": false}, "networkPolicy": values{"enabled": true},
		},
		"ConfigMap DaemonSet NetworkPolicy Pod Secret Service StatefulSet", nil,
		[]string{"kind: ClusterRole"},
	},
}

// TestChart renders the chart as helm template does and holds every object to the types of Kubernetes.
func TestChart(t *testing.T) {
	for _, tt := range installs {
		docs, notes, err := render(tt.values)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		all := strings.Join(docs, "\n")
		var kinds []string
		for _, doc := range docs {
			x, err := checkObject(doc)
			if err != nil {
				t.Errorf("%s: %v\n%s", tt.name, err, doc)
				continue
			}
			kinds = append(kinds, reflect.TypeOf(x).Elem().Name())
			if pod := podOf(x); pod != nil {
				checkRestricted(t, tt.name, pod)
			}
		}
		slices.Sort(kinds)
		if got := strings.Join(kinds, " "); got != tt.kinds {
			t.Errorf("%s: %s, want %s", tt.name, got, tt.kinds)
		}
		for _, want := range tt.has {
			if !strings.Contains(all, want) {
				t.Errorf("%s: no %s", tt.name, want)
			}
		}
		for _, bad := range tt.lacks {
			if strings.Contains(all, bad) {
				t.Errorf("%s: %s", tt.name, bad)
			}
		}
		if (tt.name != "agents alone") != strings.Contains(notes, "-n gpu port-forward svc/fleet-server 7641") {
			t.Errorf("%s: notes %q", tt.name, notes)
		}
	}
}

// TestLint is helm lint: not even a word of advice but on the icon, which there is none of.
func TestLint(t *testing.T) {
	for _, tt := range installs {
		for _, m := range lint.All(chartDir, tt.values, "gpu", false).Messages {
			if !strings.Contains(m.Error(), "icon is recommended") {
				t.Errorf("%s: %v", tt.name, m)
			}
		}
	}
}

// TestValues gives wrong values, each of which the schema refuses by its place.
func TestValues(t *testing.T) {
	for place, v := range map[string]values{
		"/server/enabled":             {"server": values{"enabled": "yes"}},
		"servers":                     {"servers": values{}},
		"hots":                        {"server": values{"hots": []any{"a"}}},
		"/server/hosts/0":             {"server": values{"hosts": []any{""}}},
		"/server/args":                {"server": values{"args": "--keep 9d"}},
		"/server/storage/size":        {"server": values{"storage": values{"size": "ten"}}},
		"/agent/join":                 {"agent": values{"join": "https://head:7641"}},
		"/agent/nodes/0":              {"agent": values{"nodes": []any{"GPU_01"}}},
		"/agent/nodes":                {"agent": values{"nodes": []any{"a", "a"}}},
		"/agent/hostPath":             {"agent": values{"hostPath": "var/lib"}},
		"/agent/image/repository":     {"agent": values{"image": values{"repository": "a b"}}},
		"/image/tag":                  {"image": values{"tag": "1+2"}},
		"/image/pullPolicy":           {"image": values{"pullPolicy": "Sometimes"}},
		"/imagePullSecrets/0":         {"imagePullSecrets": []any{"pull"}},
		"/serviceMonitor/tokenSecret": {"serviceMonitor": values{"enabled": true}},
		"/serviceMonitor/interval":    {"serviceMonitor": values{"interval": "30"}},
		"/networkPolicy/from":         {"networkPolicy": values{"from": "all"}},
		"/rbac/create":                {"rbac": values{"create": 1}},
	} {
		if _, _, err := render(v); err == nil || !strings.Contains(err.Error(), place) {
			t.Errorf("%v: %v; want an error at %s", v, err, place)
		}
	}
}

// podOf is the pod that an object starts; nil for none.
func podOf(x any) *core.PodSpec {
	switch x := x.(type) {
	case *apps.DaemonSet:
		return &x.Spec.Template.Spec
	case *apps.StatefulSet:
		return &x.Spec.Template.Spec
	case *core.Pod:
		return &x.Spec
	}
	return nil
}

// checkRestricted holds pods to what the restricted standard asks of security contexts; an agent with a folder of the
// host is root there, without a capability.
func checkRestricted(t *testing.T, name string, p *core.PodSpec) {
	t.Helper()
	s, hosts := p.SecurityContext, false
	for _, v := range p.Volumes {
		hosts = hosts || v.HostPath != nil
	}
	if s == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault || (*s.RunAsUser == 0) != hosts ||
		!hosts && !*s.RunAsNonRoot {
		t.Errorf("%s: %+v", name, s)
	}
	for _, c := range p.Containers {
		if x := c.SecurityContext; *x.AllowPrivilegeEscalation || !*x.ReadOnlyRootFilesystem || len(x.Capabilities.Add) > 0 ||
			!slices.Equal(x.Capabilities.Drop, []core.Capability{"ALL"}) {
			t.Errorf("%s: %+v", name, x)
		}
		if c.Resources.Limits.Memory().IsZero() {
			t.Errorf("%s: no bound on memory", name)
		}
	}
}

// TestChartIdentity: no pod of an agent mounts a secret of the server or of another node. With tokens, it has one for
// our audience and the API server's rights are the server's alone.
func TestChartIdentity(t *testing.T) {
	for _, nodes := range [][]any{nil, {"gpu01", "gpu02.example", "gpu03"}} {
		docs, _, err := render(values{"agent": values{"nodes": nodes}})
		if err != nil {
			t.Fatal(err)
		}
		var names []any
		for _, doc := range docs {
			x, err := decode(doc)
			if err != nil {
				t.Fatal(err)
			}
			set, ok := x.(*apps.DaemonSet)
			if !ok {
				continue
			}
			node, own := set.Spec.Selector.MatchLabels["busbar.dev/node"], set.Spec.Template.Spec
			if nodes != nil {
				names = append(names, node)
				want := []core.NodeSelectorTerm{{MatchFields: []core.NodeSelectorRequirement{
					{Key: "metadata.name", Operator: core.NodeSelectorOpIn, Values: []string{node}},
				}}}
				on := own.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
				if !reflect.DeepEqual(on, want) {
					t.Errorf("%s runs on %+v", node, on)
				}
			}
			tokens := 0
			for _, v := range own.Volumes {
				switch {
				case v.Secret != nil && (nodes == nil || v.Secret.SecretName != "busbar-node-"+node),
					v.ConfigMap != nil && v.ConfigMap.Name != "fleet-server-ca", v.HostPath != nil:
					t.Errorf("%q mounts %+v", node, v)
				case v.Projected != nil:
					for _, source := range v.Projected.Sources {
						if got := source.ServiceAccountToken; got == nil || got.Audience != client.ExchangeAudience {
							t.Errorf("%+v", source)
						}
						tokens++
					}
				}
			}
			if (tokens == 1) != (nodes == nil) || *own.AutomountServiceAccountToken {
				t.Errorf("%q has %d tokens", node, tokens)
			}
			for _, c := range own.Containers {
				if len(c.EnvFrom) > 0 || strings.Contains(fmt.Sprint(c.Env), "secret") {
					t.Errorf("%s has %+v %+v", node, c.EnvFrom, c.Env)
				}
			}
		}
		slices.SortFunc(names, func(a, b any) int { return strings.Compare(a.(string), b.(string)) })
		if !slices.Equal(names, nodes) {
			t.Errorf("agents on %v; want %v", names, nodes)
		}
	}
}

// checkObject holds an object to its type and to what the API server asks beyond it.
func checkObject(doc string) (any, error) {
	x, err := decode(doc)
	if err != nil {
		return nil, err
	}
	switch x := x.(type) {
	case *apps.StatefulSet:
		volumes := []string{x.Spec.VolumeClaimTemplates[0].Name}
		return x, checkPod(x.Spec.Selector.MatchLabels, &x.Spec.Template, volumes)
	case *apps.DaemonSet:
		return x, checkPod(x.Spec.Selector.MatchLabels, &x.Spec.Template, nil)
	case *core.Pod:
		return x, checkPod(nil, &core.PodTemplateSpec{Spec: x.Spec}, nil)
	case *core.Secret:
		_, err := tls.X509KeyPair(x.Data["tls.crt"], x.Data["tls.key"])
		return x, err
	case *core.Service:
		if len(x.Spec.Selector) == 0 || len(x.Spec.Ports) != 2 {
			return nil, fmt.Errorf("service %+v", x.Spec)
		}
	}
	return x, nil
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
		if c.Image == "" {
			return fmt.Errorf("%s has no image", c.Name)
		}
	}
	return nil
}
