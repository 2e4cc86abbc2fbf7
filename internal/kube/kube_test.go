package kube_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
)

// pods are answers in the shape of an API server of Kubernetes 1.30, two pages of one list.
const (
	firstPage = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"771","continue":"NEXT","remainingItemCount":3},"items":[
{"metadata":{"name":"llama-1","namespace":"train","labels":{"batch.kubernetes.io/job-name":"llama"},"managedFields":[{"manager":"kubelet"}]},
 "spec":{"nodeName":"gpu-b","containers":[{"name":"main","image":"x","env":[{"name":"NCCL_RAS_ADDR","value":"0.0.0.0:28100"},{"name":"POD","valueFrom":{"fieldRef":{"fieldPath":"metadata.name"}}}]}]},
 "status":{"phase":"Running","podIP":"10.4.0.2","hostIP":"10.0.0.2","containerStatuses":[{"name":"main","ready":true,"restartCount":0,"state":{"running":{"startedAt":"2026-11-17T00:00:00Z"}},"lastState":{}}]}},
{"metadata":{"name":"llama-0"},"spec":{"nodeName":"gpu-a","containers":[{"name":"main"}]},"status":{"phase":"Running","podIP":"10.4.0.1","containerStatuses":[{"state":{"running":{}},"lastState":{"terminated":{"exitCode":137,"reason":"OOMKilled"}}}]}}]}`
	secondPage = `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"771"},"items":[
{"metadata":{"name":"llama-2"},"spec":{"containers":[{"name":"main"}]},"status":{"phase":"Pending","conditions":[{"type":"PodScheduled","status":"False","reason":"Unschedulable","message":"0/4 nodes are available: 4 Insufficient nvidia.com/gpu."}]}},
{"metadata":{"name":"llama-3"},"spec":{"nodeName":"gpu-c","containers":[{"name":"main"}]},"status":{"phase":"Pending","containerStatuses":[{"state":{"waiting":{"reason":"ImagePullBackOff","message":"…"}},"lastState":{}}]}},
{"metadata":{"name":"llama-4"},"spec":{"nodeName":"gpu-d","containers":[{"name":"main"}]},"status":{"phase":"Failed","podIP":"10.4.0.5","containerStatuses":[{"state":{"terminated":{"exitCode":1,"reason":"Error"}},"lastState":{}}]}}]}`
)

func statusOf(code int, reason, message string) string {
	return fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":%q,"reason":%q,"code":%d}`, message, reason, code)
}

// server stands in for the API server: it knows one token and one client certificate.
func server(t *testing.T, handle http.HandlerFunc) (*httptest.Server, string) {
	t.Helper()
	s := httptest.NewUnstartedServer(handle)
	s.TLS = &tls.Config{ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}))
}

func api(t *testing.T) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		allowed := r.Header.Get("Authorization") == "Bearer right" ||
			len(r.TLS.PeerCertificates) > 0 && r.TLS.PeerCertificates[0].Subject.CommonName == "admin"
		v := r.URL.Query()
		w.Header().Set("Content-Type", "application/json")
		say := func(code int, text string) { w.WriteHeader(code); fmt.Fprint(w, text) }
		switch {
		case !allowed:
			say(401, statusOf(401, "Unauthorized", "Unauthorized"))
		case r.URL.Path == "/api/v1/namespaces/secret/pods":
			say(403, statusOf(403, "Forbidden",
				`pods is forbidden: User "system:serviceaccount:train:default" cannot list resource "pods" in API group "" in the namespace "secret"`))
		case r.URL.Path != "/api/v1/namespaces/train/pods":
			say(404, "404 page not found")
		case v.Get("labelSelector") != "app=llama" && v.Get("labelSelector") != "training.kubeflow.org/job-name=llama":
			fmt.Fprint(w, `{"kind":"PodList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`)
		case v.Get("continue") == "":
			fmt.Fprint(w, firstPage)
		case v.Get("continue") == "NEXT":
			fmt.Fprint(w, secondPage)
		default:
			t.Errorf("asked %s", r.URL)
		}
	}
}

func here(files map[string]string, env ...string) kube.Here {
	return kube.Here{
		Getenv: func(name string) string {
			for _, e := range env {
				if v, ok := strings.CutPrefix(e, name+"="); ok {
					return v
				}
			}
			return ""
		},
		ReadFile: func(name string) ([]byte, error) {
			if text, ok := files[name]; ok {
				return []byte(text), nil
			}
			return nil, fmt.Errorf("open %s: %w", name, fs.ErrNotExist)
		},
	}
}

func config(server, ca, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: a
preferences: {}
contexts:
- name: b
  context: {cluster: other, user: other}
- name: a
  context:
    cluster: one
    user: me
    namespace: train
clusters:
- name: one
  cluster:
    server: %s
    certificate-authority-data: %s
users:
- name: me
  user:
%s`, server, base64.StdEncoding.EncodeToString([]byte(ca)), user)
}

// TestPods lists pods by token, token file, client certificate and service account, over pages, with those that do not
// run.
func TestPods(t *testing.T) {
	s, ca := server(t, api(t))
	cert, key := clientCert(t)
	host, port, _ := net.SplitHostPort(s.Listener.Addr().String())
	files := map[string]string{
		"/etc/token": config(s.URL, ca, "    token: right\n"),
		"/etc/file":  config(s.URL, ca, "    tokenFile: tokens/mine\n"), "/etc/tokens/mine": "right\n",
		"/etc/cert": config(s.URL, ca, "    client-certificate: me.crt\n    client-key-data: "+
			base64.StdEncoding.EncodeToString([]byte(key))+"\n"), "/etc/me.crt": cert,
		"/home/ann/.kube/config":                                  config(s.URL, ca, "    token: right\n"),
		"/var/run/secrets/kubernetes.io/serviceaccount/ca.crt":    ca,
		"/var/run/secrets/kubernetes.io/serviceaccount/token":     "right",
		"/var/run/secrets/kubernetes.io/serviceaccount/namespace": "train",
	}
	for _, env := range [][]string{
		{"KUBECONFIG=/etc/token"},
		{"KUBECONFIG=/etc/absent:/etc/token"},
		{"KUBECONFIG=/etc/file"},
		{"KUBECONFIG=/etc/cert"},
		{"HOME=/home/ann"},
		{"KUBERNETES_SERVICE_HOST=" + host, "KUBERNETES_SERVICE_PORT=" + port},
	} {
		c, err := kube.Load(here(files, env...))
		if err != nil {
			t.Errorf("%v: %v", env, err)
			continue
		}
		for _, text := range []string{"train/app=llama", "app=llama", "train/llama", "llama"} {
			q, err := kube.Parse(text)
			if err != nil {
				t.Fatal(err)
			}
			list, err := c.Pods(t.Context(), q)
			if err != nil || len(list) != 5 {
				t.Errorf("%v %s: %d pods, %v", env, text, len(list), err)
				continue
			}
			want := []kube.Pod{
				{
					Name: "llama-0", Node: "gpu-a", IP: "10.4.0.1", Phase: "Running",
					Reason: "restarted after OOMKilled, exit code 137",
				},
				{Name: "llama-1", Node: "gpu-b", IP: "10.4.0.2", Phase: "Running", RAS: "0.0.0.0:28100"},
				{
					Name: "llama-2", Phase: "Pending",
					Reason: "Unschedulable: 0/4 nodes are available: 4 Insufficient nvidia.com/gpu.",
				},
				{Name: "llama-3", Node: "gpu-c", Phase: "Pending", Reason: "ImagePullBackOff"},
				{Name: "llama-4", Node: "gpu-d", IP: "10.4.0.5", Phase: "Failed", Reason: "Error, exit code 1"},
			}
			for i := range want {
				if list[i] != want[i] {
					t.Errorf("%v: %+v, expected %+v", env, list[i], want[i])
				}
			}
		}
	}
}

// TestRefused says what an API server's refusals mean, and never what the token is.
func TestRefused(t *testing.T) {
	s, ca := server(t, api(t))
	other, _ := server(t, api(t))
	for _, x := range []struct{ config, ask, want string }{
		{config(s.URL, ca, "    token: wrong-secret\n"), "train/llama", "401 Unauthorized"},
		{config(s.URL, ca, "    token: right\n"), "secret/llama", "right to list pods"},
		{config(s.URL+"/k8s/x", ca, "    token: right\n"), "train/llama", "address of a Kubernetes API server"},
		{config(s.URL, ca, "    token: right\n"), "train/mistral", "no pods of a job mistral"},
		{config(s.URL, strings.Replace(ca, "MII", "NII", 1), "    token: right\n"), "train/llama", "certificate"},
		{config(strings.Replace(s.URL, "https", "http", 1), ca, "    token: right\n"), "train/llama", "400 Bad Request"},
		{config("http://gpu1:8001", ca, "    token: right\n"), "train/llama", "expected https://"},
		{
			config(s.URL, ca, "    exec:\n      command: aws\n      apiVersion: client.authentication.k8s.io/v1beta1\n"),
			"train/llama", "kubectl proxy",
		},
		{config(s.URL, ca, "    client-certificate-data: eA==\n    client-key-data: eA==\n"), "train/llama", "do not fit"},
		{config(s.URL, ca, "    client-certificate-data: \"*\"\n"), "train/llama", "not base64"},
		{
			strings.Replace(config(other.URL, ca, "    token: right\n"), "current-context: a", "current-context: z", 1),
			"train/llama", "none of its 2 contexts",
		},
		{"a: [", "train/llama", "no kubeconfig"},
		{"", "train/llama", "no kubeconfig"},
	} {
		err := func() error {
			c, err := kube.Load(here(map[string]string{"/c": x.config}, "KUBECONFIG=/c"))
			if err != nil {
				return err
			}
			q, err := kube.Parse(x.ask)
			if err != nil {
				return err
			}
			_, err = c.Pods(t.Context(), q)
			return err
		}()
		if err == nil || !strings.Contains(err.Error(), x.want) || strings.Contains(err.Error(), "wrong-secret") {
			t.Errorf("%s: %v; expected %q", x.ask, err, x.want)
		}
	}
	if _, err := kube.Load(here(nil)); !errors.Is(err, kube.ErrNone) {
		t.Errorf("without credentials: %v", err)
	}
}

// TestOldList begins again where a list grows old between two pages, and follows no redirect with the token.
func TestOldList(t *testing.T) {
	asked := 0
	s, ca := server(t, func(w http.ResponseWriter, r *http.Request) {
		asked++
		switch {
		case r.URL.Path == "/elsewhere":
			t.Error("followed a redirect")
		case strings.Contains(r.URL.Path, "/moved/"):
			http.Redirect(w, r, "/elsewhere", http.StatusFound)
		case r.URL.Query().Get("continue") == "":
			fmt.Fprint(w, firstPage)
		case asked < 3:
			w.WriteHeader(410)
			fmt.Fprint(w, statusOf(410, "Expired", "The provided continue parameter is too old"))
		default:
			fmt.Fprint(w, secondPage)
		}
	})
	c, err := kube.Load(here(map[string]string{"/c": config(s.URL, ca, "    token: right\n")}, "KUBECONFIG=/c"))
	if err != nil {
		t.Fatal(err)
	}
	list, err := c.Pods(t.Context(), kube.Question{Selector: "app=llama"})
	if err != nil || len(list) != 5 || asked != 4 {
		t.Errorf("%d pods after %d questions: %v", len(list), asked, err)
	}
	if _, err := c.Pods(t.Context(), kube.Question{Namespace: "moved", Selector: "app=llama"}); !errors.Is(err,
		failure.ErrCannot) {
		t.Errorf("a redirect: %v", err)
	}
}

// TestParse tells a namespace from the slash of a label.
func TestParse(t *testing.T) {
	for text, want := range map[string]kube.Question{
		"train/llama":                           {Namespace: "train", Job: "llama"},
		"llama":                                 {Job: "llama"},
		"app=x,tier in (gpu)":                   {Selector: "app=x,tier in (gpu)"},
		"batch.kubernetes.io/job-name=x":        {Selector: "batch.kubernetes.io/job-name=x"},
		"train/training.kubeflow.org/job-name=": {Namespace: "train", Selector: "training.kubeflow.org/job-name="},
	} {
		if got, err := kube.Parse(text); err != nil || got != want {
			t.Errorf("%s: %+v, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "/", "train/", "a b;c=d", "x=$(id)", "../x", strings.Repeat("a", 300)} {
		if got, err := kube.Parse(text); err == nil {
			t.Errorf("%q is %+v", text, got)
		}
	}
}

// FuzzConfig reads anything as a kubeconfig without harm.
func FuzzConfig(f *testing.F) {
	f.Add(config("https://127.0.0.1:6443", "x", "    token: right\n"))
	f.Add("clusters: [{name: one, cluster: 3}]\ncontexts: 7\nusers: {}\ncurrent-context: []")
	f.Fuzz(func(_ *testing.T, text string) {
		_, _ = kube.Load(here(map[string]string{"/c": text}, "KUBECONFIG=/c"))
	})
}

func clientCert(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "admin"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, c, c, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})),
		string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der}))
}
