// Package contracts holds what busbar tells other programs against those programs' own parsers and libraries: CEL,
// gRPC with NVSentinel's protocol, OpenAPI with a client made from it, Prometheus, and a client of MCP. A module of its
// own, which fetches them the first time: make schema runs it.
package contracts

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"cel.dev/cel-go/cel"
	"github.com/bufbuild/protocompile"
	"github.com/getkin/kin-openapi/openapi3"
	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/oapi-codegen/oapi-codegen/v2/pkg/codegen"
	_ "github.com/oapi-codegen/runtime" // which a generated client imports
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/textparse"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"
	"gopkg.in/yaml.v3"
)

var busbar string // the program

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "contracts.")
	if err == nil {
		busbar = filepath.Join(dir, "busbar")
		build := exec.Command("go", "build", "-o", busbar, "./cmd/busbar")
		build.Dir, build.Stderr = "../..", os.Stderr
		err = build.Run()
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

// says is what busbar prints.
func says(t *testing.T, args ...string) string {
	t.Helper()
	out, err := exec.Command(busbar, args...).Output()
	if err != nil {
		t.Fatalf("busbar %q: %v", args, err)
	}
	return string(out)
}

// TestCEL: the threshold is an expression that is true of what a healthy machine reaches and false below.
func TestCEL(t *testing.T) {
	var doc struct{ Thresholds map[string]string }
	if err := yaml.Unmarshal([]byte(says(t, "predict", "dgx-h100:16", "--size", "8G", "-o", "cel")), &doc); err != nil {
		t.Fatal(err)
	}
	env, err := cel.NewEnv(cel.Variable("value", cel.DoubleType), cel.CrossTypeNumericComparisons(true))
	if err != nil {
		t.Fatal(err)
	}
	ast, issues := env.Compile(doc.Thresholds["busBandwidthGBps"])
	if issues.Err() != nil {
		t.Fatal(doc.Thresholds, issues.Err())
	}
	program, err := env.Program(ast)
	if err != nil {
		t.Fatal(err)
	}
	for value, want := range map[float64]bool{480: true, 331: true, 120: false, 0: false} {
		if got, _, err := program.Eval(map[string]any{"value": value}); err != nil || got.Value() != want {
			t.Errorf("%s of %g: %v (%v), want %v", doc.Thresholds, value, got, err, want)
		}
	}
}

// TestNVSentinelValues: the values are YAML with the names that the chart of the checks reads.
func TestNVSentinelValues(t *testing.T) {
	var doc struct {
		Preflight struct {
			InitContainers []struct {
				Name string
				Env  []struct{ Name, Value string }
			} `yaml:"initContainers"`
		}
	}
	text := says(t, "predict", "dgx-h100:16", "--size", "4G,8G", "-o", "nvsentinel")
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil || len(doc.Preflight.InitContainers) != 1 ||
		len(doc.Preflight.InitContainers[0].Env) != 2 {
		t.Error(text, err)
	}
}

// server is a busbar serve of its own folder, and a token that may read.
func server(t *testing.T) (at, token, data string) {
	t.Helper()
	data = t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	serve := exec.CommandContext(ctx, busbar, "serve", "--data", data, "--listen", "127.0.0.1:0", "--bus-listen",
		"127.0.0.1:0")
	out, err := serve.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = serve.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	at, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "open "), "/login")
	return at, strings.TrimSpace(says(t, "serve", "token", "add", "contracts", "--data", data)), data
}

func get(t *testing.T, url, token, accept string) (kind string, body []byte) {
	t.Helper()
	req, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Accept", accept)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err = io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusOK {
		t.Fatalf("%s: %d %s (%v)", url, res.StatusCode, body, err)
	}
	return res.Header.Get("Content-Type"), body
}

// TestMetrics: Prometheus' parser takes both forms, and its linter has nothing to say.
func TestMetrics(t *testing.T) {
	at, token, _ := server(t)
	seen := map[string]bool{}
	for _, accept := range []string{"text/plain", "application/openmetrics-text; version=1.0.0"} {
		var kind string
		var body []byte
		for range 100 { // until this machine has joined its own fleet
			if kind, body = get(t, at+"/metrics", token, accept); bytes.Contains(body, []byte("busbar_node_up{")) {
				break
			}
			time.Sleep(100 * time.Millisecond)
		}
		p, err := textparse.New(body, kind, labels.NewSymbolTable(), textparse.ParserOptions{})
		if err != nil {
			t.Fatal(kind, err)
		}
		for {
			entry, err := p.Next()
			if err == io.EOF {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v\n%s", kind, err, body)
			}
			if entry == textparse.EntrySeries {
				var l labels.Labels
				p.Labels(&l)
				seen[l.Get("__name__")] = true
			}
		}
		if accept == "text/plain" {
			problems, err := promlint.New(bytes.NewReader(body)).Lint()
			if err != nil || len(problems) > 0 {
				t.Error(problems, err)
			}
		}
	}
	for _, want := range []string{"busbar_build_info", "busbar_node_unhealthy", "busbar_health_evaluations_total"} {
		if !seen[want] {
			t.Errorf("no %s among %v", want, seen)
		}
	}
}

// TestOpenAPI: the description is valid, and a client that is generated from it asks a prediction.
func TestOpenAPI(t *testing.T) {
	at, token, _ := server(t)
	_, text := get(t, at+"/api/openapi.json", token, "application/json")
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Fatal(err)
	}
	code, err := codegen.Generate(doc, codegen.Configuration{
		PackageName: "main", Generate: codegen.GenerateOptions{Client: true, Models: true},
		OutputOptions: codegen.OutputOptions{SkipPrune: true},
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"go.mod", "go.sum"} {
		data, err := os.ReadFile(name)
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	const main = `package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
)

func main() {
	c, err := NewClientWithResponses(os.Args[1], WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
		r.Header.Set("Authorization", "Bearer "+os.Args[2])
		return nil
	}))
	if err != nil {
		panic(err)
	}
	cluster, size := "dgx-h100:2", "1G"
	r, err := c.PredictWithResponse(context.Background(), &PredictParams{C: &cluster, Size: &size})
	if err != nil || r.JSON200 == nil {
		panic(fmt.Sprint(err, string(r.Body)))
	}
	fmt.Println(*(*r.JSON200.Rows)[0].BusbwGBps)
}
`
	for name, data := range map[string]string{"client.go": code, "main.go": main} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command("go", "run", "-mod=mod", ".", at, token)
	run.Dir = dir
	out, err := run.CombinedOutput()
	var rate float64
	if _, scan := fmt.Sscan(string(out), &rate); err != nil || scan != nil || rate < 100 || rate > 900 {
		t.Errorf("%v: %s", err, out)
	}
}

// TestMCP: a client's library finds five tools that only read, and calls each, also with what should not be said.
func TestMCP(t *testing.T) {
	_, _, data := server(t)
	before := folder(t, data)
	client := mcp.NewClient(&mcp.Implementation{Name: "contracts", Version: "1"}, nil)
	cmd := exec.Command(busbar, "serve", "--mcp", "--data", data)
	s, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	list, err := s.ListTools(t.Context(), nil)
	if err != nil || len(list.Tools) != 5 {
		t.Fatal(list, err)
	}
	for _, tool := range list.Tools {
		if !tool.Annotations.ReadOnlyHint || tool.Annotations.DestructiveHint == nil || *tool.Annotations.DestructiveHint {
			t.Errorf("%s is not said to read only", tool.Name)
		}
	}
	for _, c := range []struct {
		tool  string
		with  map[string]any
		error bool
		want  string
	}{
		{"get_fleet_status", nil, false, ""},
		{"list_unhealthy_nodes", nil, false, ""},
		{"explain_node", map[string]any{"node": "no-such-node"}, true, "no node"},
		{"predict_collective", map[string]any{"cluster": "dgx-h100:2", "size": "1G"}, false, "nvls_tree"},
		{
			"diagnose_log",
			map[string]any{"text": "NCCL WARN Call to ibv_reg_mr failed, Cannot allocate memory"},
			false,
			"memlock",
		},
		{"predict_collective", map[string]any{"cluster": "-", "size": "1G"}, true, ""},
		{"predict_collective", map[string]any{"cluster": "dgx-h100:99999999999", "size": "1G"}, true, ""},
		{"predict_collective", map[string]any{"cluster": "$(touch x)", "size": "1G"}, true, ""},
		{"predict_collective", map[string]any{"cluster": "dgx-h100:2", "size": "1G", "output": "x.svg"}, true, "no argument"},
		{"explain_node", map[string]any{"node": []string{"a"}}, true, "expected a string"},
		{"diagnose_log", map[string]any{"text": strings.Repeat("\x1b[31m\u202e%s\n", 1<<16)}, false, ""},
		{"diagnose_log", map[string]any{"path": "/no/such/file"}, true, "no such file"},
	} {
		r, err := s.CallTool(t.Context(), &mcp.CallToolParams{Name: c.tool, Arguments: c.with})
		if err != nil {
			t.Errorf("%s: %v", c.tool, err)
			continue
		}
		text := r.Content[0].(*mcp.TextContent).Text
		if r.IsError != c.error || !strings.Contains(text, c.want) || strings.ContainsAny(text, "\x1b\u202e") {
			t.Errorf("%s %.80v: error %v, %.300s", c.tool, c.with, r.IsError, text)
		}
	}
	if after := folder(t, data); after != before {
		t.Errorf("the server's folder changed:\n%s\n%s", before, after)
	}
}

// folder is what may be changed of a server's folder by who asks it: tokens and credentials.
func folder(t *testing.T, dir string) (text string) {
	t.Helper()
	for _, name := range []string{"tokens.json", "tokens", "keys"} {
		if data, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			text += fmt.Sprintf("%s %x\n", name, data)
		}
	}
	return text
}

// healthEvent is the part of NVSentinel's data-models/protobufs/health_event.proto (commit 264bfab8) that a check
// fills: names and numbers alone.
const healthEvent = `syntax = "proto3";
package datamodels;
import "google/protobuf/timestamp.proto";
message HealthEvents { uint32 version = 1; repeated HealthEvent events = 2; }
message Entity { string entityType = 1; string entityValue = 2; }
message HealthEvent {
  uint32 version = 1; string agent = 2; string componentClass = 3; string checkName = 4; bool isFatal = 5;
  bool isHealthy = 6; string message = 7; int32 recommendedAction = 8; repeated string errorCode = 9;
  repeated Entity entitiesImpacted = 10; map<string, string> metadata = 11;
  google.protobuf.Timestamp generatedTimestamp = 12; string nodeName = 13; int32 processingStrategy = 16;
}
`

// raw leaves messages as bytes.
type raw struct{}

func (raw) Marshal(v any) ([]byte, error)      { return *v.(*[]byte), nil }
func (raw) Unmarshal(data []byte, v any) error { *v.(*[]byte) = bytes.Clone(data); return nil }
func (raw) Name() string                       { return "raw" }

// connector is NVSentinel's, as far as a check speaks to it.
func connector(t *testing.T) (socket string, events chan protoreflect.Message) {
	t.Helper()
	files, err := (&protocompile.Compiler{Resolver: protocompile.WithStandardImports(&protocompile.SourceResolver{
		Accessor: protocompile.SourceAccessorFromMap(map[string]string{"health_event.proto": healthEvent}),
	})}).Compile(t.Context(), "health_event.proto")
	if err != nil {
		t.Fatal(err)
	}
	kind := files[0].Messages().ByName("HealthEvents")
	events = make(chan protoreflect.Message, 16)
	take := func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
		var data, none []byte
		if err := decode(&data); err != nil {
			return nil, err
		}
		m := dynamicpb.NewMessage(kind)
		if err := (proto.UnmarshalOptions{}).Unmarshal(data, m); err != nil {
			return nil, err
		}
		if len(m.GetUnknown()) > 0 {
			return nil, fmt.Errorf("unknown fields %x", m.GetUnknown())
		}
		events <- m
		return &none, nil
	}
	s := grpc.NewServer(grpc.ForceServerCodec(raw{}))
	s.RegisterService(&grpc.ServiceDesc{
		ServiceName: "datamodels.PlatformConnector", HandlerType: (*any)(nil),
		Methods: []grpc.MethodDesc{{MethodName: "HealthEventOccurredV1", Handler: take}},
	}, struct{}{})
	socket = filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(s.Stop)
	return socket, events
}

// pod runs a check as a pod of a gang, and is its exit code.
func pod(t *testing.T, env []string, args ...string) <-chan string {
	t.Helper()
	ended := make(chan string, 1)
	cmd := exec.Command(busbar, append([]string{"check", "--as", "nvsentinel", "--no-load"}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	go func() {
		out, _ := cmd.CombinedOutput()
		ended <- fmt.Sprintf("exit %d\n%s", cmd.ProcessState.ExitCode(), out)
	}()
	return ended
}

// TestNVSentinel: two pods of a gang check each other and report their nodes; a node that is not as the cluster's
// description has it fails, and does not where verdicts are only stored.
func TestNVSentinel(t *testing.T) {
	socket, events := connector(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(l.Addr().String())
	l.Close()
	gang := t.TempDir()
	for name, text := range map[string]string{
		"expected_count": "2", "peers": "w-0;127.0.0.1;0\nw-1;127.0.0.1;1", "master_addr": "127.0.0.1", "master_port": port,
		"gang_id": "g",
	} {
		if err := os.WriteFile(filepath.Join(gang, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := func(i int, more ...string) []string {
		return append([]string{
			fmt.Sprintf("NODE_NAME=node-%d", i), fmt.Sprintf("POD_NAME=w-%d", i), "GANG_ID=g", "GANG_CONFIG_DIR=" + gang,
			"PLATFORM_CONNECTOR_SOCKET=unix://" + socket, "PROCESSING_STRATEGY=EXECUTE_REMEDIATION",
		}, more...)
	}
	one, two := pod(t, env(0)), pod(t, env(1))
	if a, b := <-one, <-two; !strings.HasPrefix(a, "exit 0") || !strings.HasPrefix(b, "exit 0") {
		t.Fatalf("%s\n%s", a, b)
	}
	nodes := map[string]bool{}
	for range 2 {
		e := event(<-events)
		nodes[e["nodeName"].(string)] = e["isHealthy"] == true && e["isFatal"] == nil
	}
	if !nodes["node-0"] || !nodes["node-1"] {
		t.Errorf("%v", nodes)
	}
	// Alone, beside a description with GPUs that this machine does not have.
	alone := []string{"NODE_NAME=node-7", "PLATFORM_CONNECTOR_SOCKET=" + socket}
	if got := <-pod(t, alone, "-c", "dgx-h100:1"); !strings.HasPrefix(got, "exit 1") {
		t.Errorf("a node without its GPUs: %s", got)
	}
	if e := event(<-events); e["isFatal"] != true || e["isHealthy"] != nil || e["recommendedAction"] != int32(5) ||
		!strings.Contains(fmt.Sprint(e["errorCode"]), "BUSBAR_") {
		t.Errorf("%v", e)
	}
	if got := <-pod(t, append(alone, "PROCESSING_STRATEGY=STORE_ONLY"), "-c", "dgx-h100:1"); !strings.HasPrefix(got,
		"exit 0") {
		t.Errorf("a verdict that is only stored: %s", got)
	}
	if e := event(<-events); e["processingStrategy"] != int32(2) || e["isFatal"] != true {
		t.Errorf("%v", e)
	}
	if got := <-pod(t, []string{"NODE_NAME="}); !strings.HasPrefix(got, "exit 2") {
		t.Errorf("no environment: %s", got)
	}
	if got := <-pod(t, []string{"NODE_NAME=a", "PLATFORM_CONNECTOR_SOCKET=/no/such"}); !strings.HasPrefix(got, "exit 3") {
		t.Errorf("an event that is not sent: %s", got)
	}
	if got := <-pod(t, env(0, "GANG_TIMEOUT_SECONDS=1", "GANG_CONFIG_DIR="+t.TempDir())); !strings.HasPrefix(got,
		"exit 3") {
		t.Errorf("a gang that does not come: %s", got)
	}
}

// event is the first of HealthEvents, by names.
func event(m protoreflect.Message) map[string]any {
	list := m.Get(m.Descriptor().Fields().ByName("events")).List()
	out := map[string]any{}
	list.Get(0).Message().Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		out[string(f.Name())] = v.Interface()
		if f.IsList() {
			var all []string
			for i := range v.List().Len() {
				all = append(all, v.List().Get(i).String())
			}
			out[string(f.Name())] = all
		}
		return true
	})
	return out
}
