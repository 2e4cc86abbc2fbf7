package schema

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"sigs.k8s.io/yaml"

	"busbar.dev/internal/kube"
)

// TestAPI holds what a server sends to the API server to the types: requests are decoded strictly, patches applied as
// the API server applies them, and its answers are written from the types.
func TestAPI(t *testing.T) {
	began := meta.NewTime(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	node := core.Node{
		TypeMeta: meta.TypeMeta{APIVersion: "v1", Kind: "Node"}, ObjectMeta: meta.ObjectMeta{Name: "gpu01", UID: "7f0e"},
		Spec: core.NodeSpec{PodCIDR: "10.0.0.0/24"},
		Status: core.NodeStatus{Conditions: []core.NodeCondition{
			{Type: core.NodeReady, Status: core.ConditionTrue, LastHeartbeatTime: began, LastTransitionTime: began},
		}},
	}
	var events []core.Event
	strict := func(data []byte, into any) {
		t.Helper()
		if err := yaml.UnmarshalStrict(data, into); err != nil {
			t.Errorf("%v: %s", err, data)
		}
	}
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		reply := func(v any) { _ = json.NewEncoder(w).Encode(v) }
		switch kind := r.Header.Get("Content-Type"); r.Method + " " + r.URL.Path {
		case "POST /apis/authentication.k8s.io/v1/tokenreviews":
			var x authentication.TokenReview
			strict(body, &x)
			if kind != "application/json" || x.APIVersion != authentication.SchemeGroupVersion.String() ||
				x.Kind != "TokenReview" ||
				x.Spec.Token != "a.b.c" {
				t.Errorf("%s %+v", kind, x)
			}
			x.Status = authentication.TokenReviewStatus{
				Authenticated: true, Audiences: x.Spec.Audiences,
				User: authentication.UserInfo{
					Username: "system:serviceaccount:gpu:fleet-agent",
					Groups:   []string{"system:serviceaccounts", "system:authenticated"},
					Extra: map[string]authentication.ExtraValue{
						"authentication.kubernetes.io/credential-id": {"JTI=1"}, "authentication.kubernetes.io/node-name": {"gpu01"},
						"authentication.kubernetes.io/node-uid": {"7f0e"}, "authentication.kubernetes.io/pod-name": {"fleet-agent-x"},
						"authentication.kubernetes.io/pod-uid": {"11"},
					},
				},
			}
			w.WriteHeader(http.StatusCreated)
			reply(x)
		case "GET /api/v1/nodes/gpu01":
			reply(node)
		case "PATCH /api/v1/nodes/gpu01/status":
			if kind != string(types.StrategicMergePatchType) {
				t.Error(kind)
			}
			old, _ := json.Marshal(node)
			merged, err := strategicpatch.StrategicMergePatch(old, body, core.Node{})
			if err != nil {
				t.Error(err)
			}
			node = core.Node{}
			strict(merged, &node)
			reply(node)
		case "POST /api/v1/namespaces/default/events":
			var x core.Event
			strict(body, &x)
			// As the API server's validation: an event about what has no namespace is in the default one.
			if x.APIVersion != "v1" || x.Kind != "Event" || x.Namespace != meta.NamespaceDefault ||
				x.InvolvedObject.Namespace != "" ||
				x.GenerateName == "" {
				t.Errorf("%+v", x)
			}
			events = append(events, x)
			w.WriteHeader(http.StatusCreated)
			reply(x)
		default:
			w.WriteHeader(http.StatusNotFound)
			reply(meta.Status{Message: r.URL.Path, Code: http.StatusNotFound})
		}
	}))
	defer api.Close()
	config := fmt.Sprintf("current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, "+
		"cluster: {server: %q}}]\n",
		api.URL)
	c, err := kube.Load(kube.Here{
		Getenv:   func(name string) string { return map[string]string{"KUBECONFIG": "/config"}[name] },
		ReadFile: func(string) ([]byte, error) { return []byte(config), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx := t.Context()
	if of, err := c.NodeOfToken(ctx, "a.b.c", "busbar", "gpu/fleet-agent"); of != "gpu01" || err != nil {
		t.Errorf("%s, %v", of, err)
	}
	at := began.UTC()
	set := func(status, reason string, changed time.Time) {
		t.Helper()
		at = at.Add(time.Minute)
		x := kube.Condition{
			Type: "BusbarHealthy", Status: status, Reason: reason, Message: "text", Seen: at, Changed: changed,
		}
		if err := c.SetCondition(ctx, "gpu01", x); err != nil {
			t.Fatal(err)
		}
		if err := c.Event(ctx, "gpu01", "7f0e", x); err != nil {
			t.Fatal(err)
		}
	}
	set("True", "NoKnownProblem", at)
	set("True", "NoKnownProblem", time.Time{})
	set("False", "SlowHost", at)
	list := node.Status.Conditions
	if len(list) != 2 || node.Spec.PodCIDR == "" || node.Spec.Unschedulable || node.Spec.Taints != nil {
		t.Fatalf("%+v", node)
	}
	for _, x := range list {
		if x.Type == core.NodeReady && (x.Status != core.ConditionTrue || !x.LastHeartbeatTime.Equal(&began)) ||
			x.Type == "BusbarHealthy" && (x.Status != core.ConditionFalse || x.Reason != "SlowHost" ||
				!x.LastHeartbeatTime.Equal(&meta.Time{Time: at})) {
			t.Errorf("%+v", x)
		}
	}
	last := events[len(events)-1]
	if len(events) != 3 || events[0].Type != core.EventTypeNormal || last.Type != core.EventTypeWarning ||
		last.InvolvedObject.UID != "7f0e" || last.Source.Component != "busbar" ||
		!last.FirstTimestamp.Equal(&meta.Time{Time: at}) {
		t.Errorf("%+v", last)
	}
	if n, err := c.Node(ctx, "gpu01"); err != nil || n.Metadata.UID != "7f0e" || len(n.Status.Conditions) != 2 {
		t.Errorf("%+v, %v", n, err)
	}
	if n, err := c.Node(ctx, "elsewhere"); err != nil || n != nil {
		t.Errorf("%+v, %v", n, err)
	}
}
