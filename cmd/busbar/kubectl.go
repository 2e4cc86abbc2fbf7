package main

import (
	"cmp"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"busbar.dev/fleet/client"
	"busbar.dev/internal/failure"
)

// asPlugin makes the server in Kubernetes the one that is meant, where this program is called as a plug-in of kubectl.
func asPlugin(program string) {
	if strings.TrimSuffix(filepath.Base(program), ".exe") == "kubectl-busbar" && os.Getenv("BUSBAR_SERVER") == "" {
		_ = os.Setenv("BUSBAR_SERVER", client.Kubectl) // a name that is one
	}
}

// kubectl reaches the page of a server in a pod: busbar there joins its standard streams to the server's own socket.
// kubectl has the credentials, and who may exec into the pod may order. pod is NAMESPACE/NAME; empty is the one that
// the chart's labels tell.
func (e *env) kubectl(pod string) (net.Conn, error) {
	cannot := func(format string, a ...any) (net.Conn, error) {
		return nil, failure.Cannot(fmt.Errorf("kubectl: "+format, a...))
	}
	if pod == "" {
		cmd := exec.CommandContext(e.ctx, "kubectl", "get", "pods", "--all-namespaces", "--selector",
			"app.kubernetes.io/name=busbar,app.kubernetes.io/component=server", "--output",
			`jsonpath={range .items[*]}{.metadata.namespace}/{.metadata.name} {end}`)
		cmd.Stderr = e.stderr
		out, err := cmd.Output()
		found := strings.Fields(string(out))
		switch {
		case err != nil:
			return cannot("%w", err)
		case len(found) != 1:
			return cannot("servers of busbar in pods: %s; expected one, or its name: --server kubectl:NAMESPACE/POD",
				cmp.Or(strings.Join(found, ", "), "none"))
		}
		pod = found[0]
	}
	namespace, name, ok := strings.Cut(pod, "/")
	if !ok || strings.HasPrefix(name, "-") {
		return nil, fmt.Errorf("--server kubectl:%s: expected kubectl:NAMESPACE/POD", pod)
	}
	cmd := exec.CommandContext(e.ctx, "kubectl", "exec", "--stdin", "--namespace", namespace, "--container", "server",
		name, "--",
		"/busbar", "serve", "join", "--data", "/data/server")
	here, there := net.Pipe()
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = there, e.stderr, time.Second
	in, err := cmd.StdinPipe() // Wait would wait for the end of one that it copies itself
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return cannot("%w", err)
	}
	go func() {
		_, _ = io.Copy(in, there) // one of both has ended
		in.Close()
	}()
	go func() {
		_ = cmd.Wait() // it has said why on standard error
		there.Close()
	}()
	return here, nil
}

// serveJoinCmd is the other end of kubectl.
type serveJoinCmd struct {
	client.Folder
}

// Run joins until one side ends.
func (c *serveJoinCmd) Run(e *env) error { return c.Join(e.stdin, e.stdout.w) }

// serveProbeCmd asks whether a page answers.
type serveProbeCmd struct {
	common
	client.Options
}

// Run asks once.
func (c *serveProbeCmd) Run(e *env) error { return c.Alive(e.ctx) }
