// Package kube asks a Kubernetes API server for the pods of a job, with the credentials that a user or a pod has: a
// kubeconfig or a service account. It starts no programs, so that credentials which only a program can get are refused
// by name.
package kube

import (
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"busbar.dev/internal/yamldoc"
)

// ErrNone says that there are no credentials here.
var ErrNone = errors.New("no credentials of a Kubernetes cluster here: neither KUBECONFIG, nor ~/.kube/config, nor a " +
	"pod's service account")

// Client asks one API server.
type Client struct {
	Namespace string // where a question that names none is asked

	base  *url.URL
	token func() (string, error)
	http  *http.Client
}

// Here is what credentials are looked for in.
type Here struct {
	Getenv   func(string) string
	ReadFile func(string) ([]byte, error)
}

const (
	account   = "/var/run/secrets/kubernetes.io/serviceaccount/"
	maxConfig = 4 << 20
	maxToken  = 1 << 16
)

// Load finds the credentials: the kubeconfig that KUBECONFIG names, else a pod's own account, else the user's
// kubeconfig.
func Load(h Here) (*Client, error) {
	var names []string
	if list := h.Getenv("KUBECONFIG"); list != "" {
		names = filepath.SplitList(list)
	} else {
		if h.Getenv("KUBERNETES_SERVICE_HOST") != "" {
			c, err := inCluster(h)
			if !errors.Is(err, fs.ErrNotExist) {
				return c, err
			}
		}
		if home := h.Getenv("HOME"); home != "" {
			names = []string{filepath.Join(home, ".kube", "config")}
		}
	}
	all := config{parts: map[string][]part{}}
	found := false
	for _, name := range names {
		data, err := h.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) || name == "" {
			continue // as kubectl does with a list
		}
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %w", err)
		}
		found = true
		if err := all.addFile(name, data); err != nil {
			return nil, err
		}
	}
	if !found {
		return nil, ErrNone
	}
	return all.client(h)
}

// inCluster is a pod's own account. Its token is read anew for every question: the kubelet renews it.
func inCluster(h Here) (*Client, error) {
	ca, err := h.ReadFile(account + "ca.crt")
	if err != nil {
		return nil, err
	}
	if _, err := h.ReadFile(account + "token"); err != nil {
		return nil, err
	}
	c := &Client{Namespace: "default", token: func() (string, error) { return tokenFile(h, account+"token") }}
	if ns, err := h.ReadFile(account + "namespace"); err == nil && len(ns) < 256 {
		c.Namespace = strings.TrimSpace(string(ns))
	}
	port := cmp.Or(h.Getenv("KUBERNETES_SERVICE_PORT"), "443")
	c.base = &url.URL{Scheme: "https", Host: net.JoinHostPort(h.Getenv("KUBERNETES_SERVICE_HOST"), port)}
	return c, c.connect(&tls.Config{MinVersion: tls.VersionTLS12}, ca, account+"ca.crt")
}

func tokenFile(h Here, name string) (string, error) {
	data, err := h.ReadFile(name)
	if err != nil || len(data) > maxToken {
		return "", fmt.Errorf("the token of %s cannot be read", name)
	}
	return strings.TrimSpace(string(data)), nil
}

// connect makes the connection's settings; ca is PEM, nil the system's.
func (c *Client) connect(t *tls.Config, ca []byte, name string) error {
	if ca != nil {
		t.RootCAs = x509.NewCertPool()
		if !t.RootCAs.AppendCertsFromPEM(ca) {
			return fmt.Errorf("%s: no certificate in it; expected PEM", name)
		}
	}
	c.http = &http.Client{
		Transport: &http.Transport{
			TLSClientConfig: t, Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true,
			ResponseHeaderTimeout: 10 * time.Second,
		},
		Timeout: 30 * time.Second,
		// A redirect would carry the token elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return nil
}

// config is kubeconfig files put together. Of two entries with one name the first counts, as kubectl has it.
type config struct {
	current string
	parts   map[string][]part // contexts, clusters, users
}

// part is an entry of a kubeconfig in the folder dir, to which its files' names are relative.
type part struct {
	*yamldoc.Value

	dir string
}

func (c *config) addFile(name string, data []byte) error {
	if len(data) > maxConfig {
		return fmt.Errorf("%s: more than %d MiB; expected a kubeconfig", name, maxConfig>>20)
	}
	docs, err := yamldoc.Parse(string(data))
	switch {
	case err != nil:
		return fmt.Errorf("%s: no kubeconfig: %w", name, err)
	case len(docs) == 0 || docs[0].Kind != yamldoc.Map:
		return fmt.Errorf("%s: no kubeconfig: expected contexts, clusters and users", name)
	}
	c.current = cmp.Or(c.current, docs[0].Get("current-context").Str())
	for _, what := range []string{"context", "cluster", "user"} {
		list := docs[0].Get(what + "s").List()
		for i := range list {
			c.parts[what] = append(c.parts[what], part{&list[i], filepath.Dir(name)})
		}
	}
	return nil
}

// find is the context, the cluster or the user of a name.
func (c *config) find(what, name string) (part, bool) {
	for _, p := range c.parts[what] {
		if p.Get("name").Str() == name {
			return part{p.Get(what), p.dir}, true
		}
	}
	return part{}, false
}

// client is that of the current context.
func (c *config) client(h Here) (*Client, error) {
	x, ok := c.find("context", c.current)
	if !ok {
		return nil, fmt.Errorf("kubeconfig: current-context %q is none of its %d contexts; kubectl config use-context NAME "+
			"sets it", c.current, len(c.parts["context"]))
	}
	out := &Client{Namespace: cmp.Or(x.Get("namespace").Str(), "default")}
	t := &tls.Config{MinVersion: tls.VersionTLS12}
	name := x.Get("cluster").Str()
	ca, err := c.cluster(h, name, out, t)
	if err != nil {
		return nil, err
	}
	if err := c.user(h, x.Get("user").Str(), out, t); err != nil {
		return nil, err
	}
	return out, out.connect(t, ca, "certificate-authority of cluster "+name)
}

func (c *config) cluster(h Here, name string, to *Client, t *tls.Config) ([]byte, error) {
	x, ok := c.find("cluster", name)
	if !ok {
		return nil, fmt.Errorf("kubeconfig: the context's cluster %q is not in it", name)
	}
	u, err := url.Parse(x.Get("server").Str())
	if err != nil || u.Host == "" || u.Scheme != "https" && (u.Scheme != "http" || !loopback(u.Hostname())) {
		return nil, fmt.Errorf("kubeconfig: server of cluster %s: expected https://HOST:PORT, or http:// to this machine, "+
			"as kubectl proxy serves", name)
	}
	to.base = u
	t.ServerName, t.InsecureSkipVerify = x.Get("tls-server-name").Str(), x.Get("insecure-skip-tls-verify").True()
	return x.material(h, "certificate-authority")
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// material is what stands in the entry itself as base64, or in a file; nil where neither is given.
func (p part) material(h Here, what string) ([]byte, error) {
	if inline := p.Get(what + "-data").Str(); inline != "" {
		data, err := base64.StdEncoding.DecodeString(inline)
		if err != nil {
			return nil, fmt.Errorf("kubeconfig: %s-data is not base64", what)
		}
		return data, nil
	}
	name := p.Get(what).Str()
	if name == "" {
		return nil, nil
	}
	data, err := h.ReadFile(p.path(name))
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %s: %w", what, err)
	}
	return data, nil
}

func (p part) path(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return filepath.Join(p.dir, name)
}

func (c *config) user(h Here, name string, to *Client, t *tls.Config) error {
	if name == "" {
		return nil // kubectl proxy needs none
	}
	x, ok := c.find("user", name)
	if !ok {
		return fmt.Errorf("kubeconfig: the context's user %q is not in it", name)
	}
	cert, err := x.material(h, "client-certificate")
	if err != nil {
		return err
	}
	key, err := x.material(h, "client-key")
	if err != nil {
		return err
	}
	token, file := x.Get("token").Str(), x.Get("tokenFile").Str()
	switch {
	case cert != nil:
		pair, err := tls.X509KeyPair(cert, key)
		if err != nil {
			return fmt.Errorf("kubeconfig: client certificate and key of user %s do not fit: %w", name, err)
		}
		t.Certificates = []tls.Certificate{pair}
	case file != "": // before the token, as kubectl has it
		to.token = func() (string, error) { return tokenFile(h, x.path(file)) }
	case token != "":
		to.token = func() (string, error) { return token, nil }
	case x.Get("exec") != nil, x.Get("auth-provider") != nil, x.Get("username") != nil:
		return fmt.Errorf("kubeconfig: user %s gets in by a program or a password, which busbar does not use; run kubectl "+
			"proxy --port 8001, and give a KUBECONFIG whose server is http://127.0.0.1:8001", name)
	}
	return nil
}
