package kube_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"busbar.dev/internal/kube"
)

// client is one of a server that answers everything with handle.
func client(t *testing.T, handle http.HandlerFunc) *kube.Client {
	t.Helper()
	s, ca := server(t, handle)
	c, err := kube.Load(here(map[string]string{"/c": config(s.URL, ca, "    token: right\n")}, "KUBECONFIG=/c"))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const jwt = "eyJh.eyJz.c2ln"

// review is an answer to a review of a token; extra is what it says of the user besides the name.
func review(good bool, audience, user, extra string) string {
	return fmt.Sprintf(`{"kind":"TokenReview","apiVersion":"authentication.k8s.io/v1","metadata":{},"spec":{"token":"x"},`+
		`"status":{"authenticated":%t,"user":{"username":%q,"uid":"1","groups":["system:serviceaccounts"],"extra":{%s}},"audiences":[%q]}}`,
		good, user, extra, audience)
}

// TestNodeOfToken: only a token of the account, for the audience, bound to a pod on a node has one.
func TestNodeOfToken(t *testing.T) {
	const account = "system:serviceaccount:gpu:fleet-agent"
	const bound = `"authentication.kubernetes.io/pod-name":["fleet-agent-x"],"authentication.kubernetes.io/node-name":["gpu01"]`
	for name, tt := range map[string]struct {
		token, answer string
		code          int
		node, says    string
		refused       bool
	}{
		"good":      {jwt, review(true, "busbar", account, bound), 201, "gpu01", "", false},
		"200":       {jwt, review(true, "busbar", account, bound), 200, "gpu01", "", false},
		"not known": {jwt, review(false, "busbar", account, bound), 201, "", "does not know it", true},
		"another audience": {
			jwt, review(true, "https://kubernetes", account, bound), 201, "", "expected the audience busbar", true,
		},
		"another account": {
			jwt, review(true, "busbar", account+"x", bound), 201, "", "expected system:serviceaccount:gpu:fleet-agent", true,
		},
		"a user": {jwt, review(true, "busbar", "admin", bound), 201, "", "admin", true},
		"no pod": {
			jwt, review(true, "busbar", account, `"authentication.kubernetes.io/node-name":["gpu01"]`), 201, "", "names no pod",
			true,
		},
		"no node": {
			jwt, review(true, "busbar", account, `"authentication.kubernetes.io/pod-name":["p"]`), 201, "",
			"names no pod and its node", true,
		},
		"two nodes": {
			jwt, review(true, "busbar", account, strings.Replace(bound, `["gpu01"]`, `["gpu01","gpu02"]`, 1)), 201, "",
			"names no pod", true,
		},
		"empty node": {
			jwt, review(true, "busbar", account, strings.Replace(bound, "gpu01", "", 1)), 201, "", "names no pod", true,
		},
		"known with error": {jwt, strings.Replace(review(true, "busbar", account, bound), `"audiences"`, `"error":"pod is gone","audiences"`, 1), 201, "", "pod is gone", true},
		"nothing":          {jwt, "{}", 201, "", "does not know it", true},
		"no JSON":          {jwt, "<html>", 201, "", "not what was asked for", false},
		"a list":           {jwt, "[]", 201, "", "not what was asked for", false},
		"cut off":          {jwt, review(true, "busbar", account, bound)[:90], 201, "", "not what was asked for", false},
		"forbidden": {
			jwt, statusOf(403, "Forbidden", "tokenreviews is forbidden"), 403, "", "tokenreviews is forbidden", false,
		},
		"elsewhere": {jwt, "", 302, "", "302", false},
		"too long": {
			jwt, strings.Replace(review(true, "busbar", account, bound), `"spec"`,
				`"x":"`+strings.Repeat("a", 1<<20)+`","spec"`, 1), 201, "", "not what was asked for", false,
		},
		"no token":          {"", "", 201, "", "no JSON Web Token", true},
		"a line break":      {"a.b.c\nX: y", "", 201, "", "no JSON Web Token", true},
		"a very long token": {strings.Repeat("a", 1<<17) + ".b.c", "", 201, "", "no JSON Web Token", true},
	} {
		asked := 0
		c := client(t, func(w http.ResponseWriter, r *http.Request) {
			asked++
			body, _ := io.ReadAll(r.Body)
			if r.Method != "POST" || r.URL.Path != "/apis/authentication.k8s.io/v1/tokenreviews" ||
				r.Header.Get("Authorization") != "Bearer right" || !strings.Contains(string(body), `"audiences":["busbar"]`) ||
				!strings.Contains(string(body), `"token":"`+jwt+`"`) {
				t.Errorf("%s: asked %s %s %s", name, r.Method, r.URL, body)
			}
			w.Header().Set("Location", "https://elsewhere.example/")
			w.WriteHeader(tt.code)
			_, _ = io.WriteString(w, tt.answer)
		})
		node, err := c.NodeOfToken(t.Context(), tt.token, "busbar", "gpu/fleet-agent")
		if node != tt.node || (err == nil) != (tt.says == "") || errors.Is(err, kube.ErrRefused) != tt.refused ||
			err != nil && !strings.Contains(err.Error(), tt.says) {
			t.Errorf("%s: %q, %v", name, node, err)
		}
		if (asked == 0) != (tt.answer == "" && tt.code == 201) {
			t.Errorf("%s: asked %d times", name, asked)
		}
	}
}

// FuzzReview answers with anything: a node comes only from a whole answer that says so.
func FuzzReview(f *testing.F) {
	f.Add([]byte(`{"status":{"authenticated":true,"user":{"username":"system:serviceaccount:gpu:a","extra":{"authentication.kubernetes.io/pod-name":["p"],"authentication.kubernetes.io/node-name":["n"]}},"audiences":["busbar"]}}`))
	f.Add([]byte(`{"status":null}`))
	var answer []byte
	var c *kube.Client
	f.Fuzz(func(t *testing.T, data []byte) {
		if c == nil {
			c = client(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(answer) })
		}
		answer = data
		if node, err := c.NodeOfToken(t.Context(), jwt, "busbar", "gpu/a"); err == nil &&
			!strings.Contains(string(data), "busbar") {
			t.Errorf("%q of %q", node, data)
		}
	})
}
