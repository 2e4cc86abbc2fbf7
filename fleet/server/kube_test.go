package server

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/fleet/agent"
	"busbar.dev/fleet/bus"
	"busbar.dev/fleet/client"
	"busbar.dev/fleet/health"
	"busbar.dev/internal/kube"
)

// apiServer is a client of an API server of our own.
func apiServer(t *testing.T, handle http.HandlerFunc) *kube.Client {
	t.Helper()
	api := httptest.NewServer(handle)
	t.Cleanup(api.Close)
	text := fmt.Sprintf("current-context: a\ncontexts: [{name: a, context: {cluster: a}}]\nclusters: [{name: a, cluster: "+
		"{server: %q}}]\n", api.URL)
	c, err := kube.Load(kube.Here{
		Getenv:   func(name string) string { return map[string]string{"KUBECONFIG": "/config"}[name] },
		ReadFile: func(string) ([]byte, error) { return []byte(text), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestExchange: an agent's pod gets its node's credentials for its token, again as long as they are not revoked, and
// not for another's token.
func TestExchange(t *testing.T) {
	api := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ Spec struct{ Token string } }
		if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
			t.Error(err)
		}
		if asked.Spec.Token == "a.down.c" {
			w.WriteHeader(http.StatusInternalServerError)
			fmt.Fprint(w, `{"message":"etcd password hunter2"}`)
			return
		}
		node := map[string]string{"a.gpu01.c": "gpu01", "a.evil.c": "../x"}[asked.Spec.Token]
		fmt.Fprintf(w, `{"status":{"authenticated":%t,"audiences":["busbar"],"user":{"username":"system:serviceaccount:gpu:agent",`+
			`"extra":{"authentication.kubernetes.io/pod-name":["p"],"authentication.kubernetes.io/node-name":[%q]}}}}`,
			node != "", node)
	})
	srv, err := bus.Start(bus.ServerConfig{Dir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(srv.Close)
	var notes []string
	s := &running{srv: srv, kube: api, Options: Options{KubeAgents: "gpu/agent"}}
	s.Note = func(text string) { notes = append(notes, text) }
	page := httptest.NewServer(s.exchange().Handler)
	t.Cleanup(page.Close)
	dir := t.TempDir()
	token := filepath.Join(dir, "token")
	identify := func(text string) (*agent.Options, error) {
		if err := os.WriteFile(token, []byte(text+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		o := &agent.Options{
			Join: []string{"nats://127.0.0.1:7642"}, KubeToken: token, Server: page.URL, Data: dir, Memory: "1GiB",
			MeetPort: 7643,
		}
		var notes []string
		err := o.Identify(ctx, func(text string) { notes = append(notes, text); cancel() })
		if err != nil {
			err = fmt.Errorf("%w: %v", err, notes)
		}
		return o, err
	}
	o, err := identify("a.gpu01.c")
	if err != nil {
		t.Fatal(err)
	}
	if cfg, err := o.Config(); err != nil || cfg.Name != "gpu01" {
		t.Errorf("%q, %v", cfg.Name, err)
	}
	for _, x := range [][2]string{ // of each code the first is noted
		{"a.other.c", "401 Unauthorized"},
		{"", "401 Unauthorized"},
		{"a.evil.c", "403 Forbidden"},
		{"a.down.c", "503 Service Unavailable"},
	} {
		text, want := x[0], x[1]
		if _, err := identify(text); err == nil || !strings.Contains(err.Error(), want) ||
			strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
	if log := strings.Join(notes, "\n"); !strings.Contains(log, "hunter2") || !strings.Contains(log, "../x") ||
		!strings.Contains(log, "does not know it") {
		t.Errorf("the server's notes: %s", log)
	}
	if _, err := srv.Keys().Revoke("gpu01"); err != nil {
		t.Fatal(err)
	}
	if _, err := identify("a.gpu01.c"); err == nil || !strings.Contains(err.Error(), "403 Forbidden") {
		t.Errorf("revoked: %v", err)
	}
	if _, _, err := srv.Keys().Issue("gpu01", time.Hour); err != nil {
		t.Fatal(err)
	}
	for i := 0; ; i++ {
		if _, err := identify("a.gpu01.c"); err != nil {
			if !strings.Contains(err.Error(), "429 Too Many Requests") || i < 16 {
				t.Errorf("after %d: %v", i, err)
			}
			break
		}
	}
	if _, err := client.Exchange(t.Context(), "http://gpu.example:7641", "", token); err == nil ||
		!strings.Contains(err.Error(), "expected https://") {
		t.Errorf("a token in the open: %v", err)
	}
}

// TestConditions follows what the API server is told of nodes in some rounds.
func TestConditions(t *testing.T) {
	var told []string
	const uid = "7f0e"
	api := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told = append(told, r.Method+" "+r.URL.Path+" "+string(body))
		switch {
		case strings.Contains(r.URL.Path, "elsewhere"):
			w.WriteHeader(404)
		case strings.Contains(r.URL.Path, "locked") && r.Method == "PATCH":
			w.WriteHeader(403)
			fmt.Fprint(w, `{"message":"nodes/status is forbidden"}`)
		default:
			fmt.Fprintf(w, `{"metadata":{"uid":%q},"status":{"conditions":[{"type":"Ready","status":"True","lastHeartbeatTime":null}]}}`, uid)
		}
	})
	c := &conditions{api: api, set: map[fleet.Name]condition{}}
	at := time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)
	round := func(list []finding.Finding, nodes ...fleet.NodeState) string {
		t.Helper()
		told = nil
		if err := c.round(t.Context(), nodes, list, at); err != nil {
			told = append(told, err.Error())
		}
		return strings.Join(told, "\n")
	}
	up := fleet.NodeState{Name: "gpu01", State: fleet.NodeUp}
	bad := []finding.Finding{
		{Kind: "slow-host", Severity: finding.Error, Confidence: 1, Text: "gpu01 is slow.", Nodes: []string{"gpu01"}},
		{Kind: "silent", Severity: finding.Error, Confidence: 1, Text: "gpu01 is silent.", Nodes: []string{"gpu01"}},
		{Kind: "slow-host", Severity: finding.Error, Confidence: 1, Text: "gpu02 is slow.", Nodes: []string{"gpu02"}},
	}
	if health.Drain(bad[:1]) == nil {
		t.Fatal("the finding drains nothing")
	}
	const patch = `PATCH /api/v1/nodes/gpu01/status {"status":{"conditions":[{"type":"BusbarHealthy","status":`
	is := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s:\n%s\nwant\n%s", what, got, want)
		}
	}
	is("healthy", round(nil, up), "GET /api/v1/nodes/gpu01 \n"+patch+`"True","reason":"NoKnownProblem","message":"no known problems",`+
		`"lastHeartbeatTime":"2026-01-02T03:04:05Z","lastTransitionTime":"2026-01-02T03:04:05Z"}]}}`)
	at = at.Add(time.Minute)
	is("nothing new", round(nil, up), "")
	is("starting", round(bad, fleet.NodeState{Name: "gpu01", State: fleet.NodeStarting}), "")
	is("unhealthy", round(bad, up), patch+`"False","reason":"SlowHost","message":"gpu01 is slow.",`+
		`"lastHeartbeatTime":"2026-01-02T03:05:05Z","lastTransitionTime":"2026-01-02T03:05:05Z"}]}}`+"\n"+
		`POST /api/v1/namespaces/default/events {"apiVersion":"v1","count":1,"firstTimestamp":"2026-01-02T03:05:05Z",`+
		`"involvedObject":{"apiVersion":"v1","kind":"Node","name":"gpu01","uid":"7f0e"},"kind":"Event",`+
		`"lastTimestamp":"2026-01-02T03:05:05Z","message":"gpu01 is slow.","metadata":{"generateName":"gpu01.","namespace":"default"},`+
		`"reason":"SlowHost","reportingComponent":"busbar","source":{"component":"busbar"},"type":"Warning"}`)
	at = at.Add(restateCondition)
	if got := round(bad, up); !strings.HasPrefix(got, "GET ") || !strings.Contains(got, "PATCH") {
		t.Errorf("due again: %s", got)
	}
	if got := round(bad[1:], fleet.NodeState{Name: "gpu01", State: fleet.NodeUnreachable}); !strings.Contains(got,
		`"Unknown"`) ||
		!strings.Contains(got, `"type":"Normal"`) || !strings.Contains(got, "AgentUnreachable") {
		t.Errorf("unreachable: %s", got)
	}
	if got := round(nil, fleet.NodeState{Name: "elsewhere", State: fleet.NodeUp}, fleet.NodeState{
		Name: "locked", State: fleet.NodeUp,
	},
		up); strings.Count(got, "elsewhere") != 1 || !strings.Contains(got, "nodes/status is forbidden") ||
		!strings.Contains(got, "PATCH /api/v1/nodes/gpu01") {
		t.Errorf("no node, and one that may not be written: %s", got)
	}
	if got := round(nil, fleet.NodeState{Name: "elsewhere", State: fleet.NodeUp}); got != "" || len(c.set) != 1 {
		t.Errorf("again: %s, %d known", got, len(c.set))
	}
}

// TestKubeOptions: what cannot be meant is refused before anything starts.
func TestKubeOptions(t *testing.T) {
	t.Setenv("KUBECONFIG", filepath.Join(t.TempDir(), "none"))
	for want, o := range map[string]Options{
		"expected NAMESPACE/ACCOUNT": {KubeAgents: "agents"}, "gpu/a:b: expected": {KubeAgents: "gpu/a:b"},
		"--no-fleet":           {KubeConditions: true, NoFleet: true},
		"--nats are its owner": {KubeAgents: "gpu/agent", NATS: []string{"nats://x:1"}},
		"no credentials of a":  {KubeConditions: true},
	} {
		s := &running{Options: o}
		if err := s.startKube(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want %s", err, want)
		}
	}
}
