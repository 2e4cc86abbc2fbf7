// Package mcp answers the Model Context Protocol over lines of JSON-RPC: five tools that read and compute, none that
// changes anything. Their verdicts are those of the commands.
//
// The package is not promised: it may change with the program.
package mcp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"busbar.dev/ask"
	"busbar.dev/cluster"
	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/internal/texttab"
	"busbar.dev/query"
	"busbar.dev/report"
)

// Revisions of the protocol that are spoken, the newest first. From 2026-07-28 on a client says with each request which
// it speaks, and asks server/discover instead of initialize.
var revisions = []string{"2026-07-28", "2025-11-25", "2025-06-18", "2024-11-05"}

// Bounds of a request and of an answer, and how long a tool may take.
const (
	mostRequest = 16 << 20
	mostAnswer  = 1 << 20
	mostTime    = time.Minute
)

// Server answers requests.
type Server struct {
	Version string
	Env     func() query.Env // in which each question is asked
}

// request is one of JSON-RPC. Without an id it is a notification, which nobody answers.
type request struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Method  string          `json:"method"`
	Params  struct {
		Revision  string                     `json:"protocolVersion"`
		Name      string                     `json:"name"`
		Arguments map[string]json.RawMessage `json:"arguments"`
	} `json:"params"`
}

// response is the answer to one.
type response struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  any             `json:"result,omitempty"`
	Error   *failed         `json:"error,omitempty"`
}

type failed struct {
	Code int    `json:"code"`
	Text string `json:"message"`
}

type object = map[string]any

// Serve answers until the input ends or the context does. Requests are answered one after the other.
func (s *Server) Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	lines := make(chan []byte)
	ended := make(chan error, 1)
	go func() {
		for r := bufio.NewReaderSize(in, 1<<16); ; {
			line, err := readLine(r)
			if len(line) > 0 || err == nil {
				select {
				case lines <- line:
				case <-ctx.Done():
					return
				}
			}
			if err != nil {
				ended <- err
				return
			}
		}
	}()
	enc := json.NewEncoder(out)
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-ended:
			if errors.Is(err, io.EOF) {
				return nil
			}
			return err
		case line := <-lines:
			if r := s.answer(ctx, line); r != nil {
				if err := enc.Encode(r); err != nil {
					return err
				}
			}
		}
	}
}

// readLine reads a request. Of one that is too long the beginning is kept, which is none.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for more := true; more && err == nil; {
		var part []byte
		if part, more, err = r.ReadLine(); len(line) <= mostRequest {
			line = append(line, part...)
		}
	}
	return line, err
}

// answer answers one line; nil where nobody waits for an answer.
func (s *Server) answer(ctx context.Context, line []byte) *response {
	var q request
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	if len(line) > mostRequest {
		return &response{Version: "2.0", ID: json.RawMessage("null"), Error: &failed{-32600, fmt.Sprintf(
			"a request of more than %d MiB; expected a shorter one", mostRequest>>20)}}
	}
	if err := json.Unmarshal(line, &q); err != nil || q.Version != "2.0" || q.Method == "" {
		id := json.RawMessage("null")
		if len(q.ID) > 0 {
			id = q.ID
		}
		return &response{Version: "2.0", ID: id, Error: &failed{-32600, "expected a request of JSON-RPC 2.0 on one line"}}
	}
	if len(q.ID) == 0 {
		return nil
	}
	r := &response{Version: "2.0", ID: q.ID}
	about := object{"name": "busbar", "version": s.Version}
	can := object{"tools": object{}}
	switch q.Method {
	case "initialize":
		revision := revisions[0]
		if slices.Contains(revisions, q.Params.Revision) {
			revision = q.Params.Revision
		}
		r.Result = object{"protocolVersion": revision, "capabilities": can, "serverInfo": about}
	case "server/discover":
		r.Result = object{"supportedVersions": revisions, "capabilities": can, "serverInfo": about}
	case "ping":
		r.Result = object{}
	case "tools/list":
		list := []object{}
		for i := range tools {
			list = append(list, tools[i].described())
		}
		r.Result = object{"tools": list}
	case "tools/call":
		at := slices.IndexFunc(tools, func(t tool) bool { return t.name == q.Params.Name })
		if at < 0 {
			r.Error = &failed{-32602, fmt.Sprintf("no tool %.60q; tools/list has them", q.Params.Name)}
			return r
		}
		r.Result = s.call(ctx, &tools[at], q.Params.Arguments)
	default:
		r.Error = &failed{-32601, fmt.Sprintf("no method %.60q", q.Method)}
	}
	return r
}

// call runs a tool. What goes wrong is its result, and says so: no right to look is not a fleet without faults.
func (s *Server) call(ctx context.Context, t *tool, given map[string]json.RawMessage) object {
	ctx, cancel := context.WithTimeout(ctx, mostTime)
	defer cancel()
	env := s.Env()
	env.Stdin = nil // which is the client's
	text, document, err := t.run(ctx, env, given)
	if err != nil {
		return object{"isError": true, "content": []object{{"type": "text", "text": texttab.Clean(err.Error())}}}
	}
	result := object{"content": []object{{"type": "text", "text": text}}}
	var data bytes.Buffer
	if err := report.CompactJSON(&data, document); err == nil && data.Len() <= mostAnswer {
		result["structuredContent"] = json.RawMessage(data.Bytes())
	}
	return result
}

// tool is one that can be called. Its arguments are parameters of its question.
type tool struct {
	name, about string
	question    func() any // of package query
	arguments   []argument
	text        func(io.Writer, any) error
	ask         func(ctx context.Context, question any, env query.Env, given map[string]string) (any, error)
}

// argument is one of a tool.
type argument struct {
	name, about string
	required    bool
}

// described is a tool as tools/list has it.
func (t *tool) described() object {
	properties, required := object{}, []string{}
	for _, a := range t.arguments {
		properties[a.name] = object{"type": "string", "description": a.about}
		if a.required {
			required = append(required, a.name)
		}
	}
	return object{
		"name": t.name, "description": t.about,
		"inputSchema": object{
			"type": "object", "properties": properties, "required": required, "additionalProperties": false,
		},
		"annotations": object{"readOnlyHint": true, "destructiveHint": false, "idempotentHint": true, "openWorldHint": false},
	}
}

// run asks the tool's question.
func (t *tool) run(ctx context.Context, env query.Env, raw map[string]json.RawMessage) (string, any, error) {
	given := map[string]string{}
	for name, value := range raw {
		if !slices.ContainsFunc(t.arguments, func(a argument) bool { return a.name == name }) {
			return "", nil, fmt.Errorf("%s has no argument %.60q", t.name, name)
		}
		var text string
		if err := json.Unmarshal(value, &text); err != nil {
			text = strings.TrimSpace(string(value)) // a number says the same without quotes
			if strings.ContainsAny(text, "[]{}") {
				return "", nil, fmt.Errorf("%s: %s: expected a string", t.name, name)
			}
		}
		if given[name] = text; text == "" {
			delete(given, name)
		}
	}
	for _, name := range []string{"path", "cluster"} { // a pipe may be the client's, and end never
		if s, err := os.Stat(given[name]); err == nil && !s.Mode().IsRegular() && !s.IsDir() {
			return "", nil, fmt.Errorf("%s: %s %s: expected a file or a folder", t.name, name, given[name])
		}
	}
	for _, a := range t.arguments {
		if a.required && given[a.name] == "" {
			return "", nil, fmt.Errorf("%s: %s is missing: %s", t.name, a.name, a.about)
		}
	}
	document, err := t.ask(ctx, t.question(), env, given)
	if err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	if err := t.text(&b, document); err != nil {
		return "", nil, err
	}
	text := b.String()
	if len(text) > mostAnswer {
		text = strings.ToValidUTF8(text[:mostAnswer], "") + "\n… the rest is left out"
	}
	return text, document, nil
}

// of is a tool that asks a question as a command does.
func of(t tool, q *ask.Question) tool {
	t.question = q.New
	t.text = func(w io.Writer, d any) error { return q.Text(w, d, report.TextOptions{}) }
	if t.ask == nil {
		t.ask = func(ctx context.Context, question any, env query.Env, given map[string]string) (any, error) {
			params := q.Params()
			for i := range params {
				if p := &params[i]; given[p.Name] != "" {
					if err := p.Set(question, given[p.Name]); err != nil {
						return nil, fmt.Errorf("%s: %w", p.Name, err)
					}
				}
			}
			return q.Run(ctx, question, env)
		}
	}
	return t
}

// aboutNodes is a tool that asks for the nodes of a fleet, and keeps what it is about; none is said where that is
// nothing.
func aboutNodes(t tool, keep func(d *query.NodesDoc, given map[string]string) error, none string) tool {
	t.question = func() any { return nil }
	t.ask = func(ctx context.Context, _ any, env query.Env, given map[string]string) (any, error) {
		d, err := query.Nodes{}.Run(ctx, env)
		if err == nil {
			err = keep(d, given)
		}
		return d, err
	}
	t.text = func(w io.Writer, d any) error {
		if none != "" && len(d.(*query.NodesDoc).Nodes) == 0 {
			_, err := io.WriteString(w, none)
			return err
		}
		return report.Print(w, report.TextOptions{}, report.Nodes, d.(*query.NodesDoc))
	}
	return t
}

// narrow keeps some nodes of a document, and the findings about them.
func narrow(d *query.NodesDoc, keep func(fleet.NodeState) bool) {
	d.Nodes = slices.DeleteFunc(d.Nodes, func(n fleet.NodeState) bool { return !keep(n) })
	var names []string
	for _, n := range d.Nodes {
		names = append(names, string(n.Name))
	}
	d.Findings = slices.DeleteFunc(d.Findings, func(f finding.Finding) bool {
		return !slices.ContainsFunc(f.Nodes, func(n string) bool { return slices.Contains(names, n) })
	})
	d.Hostlist = cluster.FormatSlurmHosts(names)
}

var tools = []tool{
	aboutNodes(tool{
		name: "get_fleet_status", about: "All nodes of the fleet with their state, and what is wrong.",
	}, func(*query.NodesDoc, map[string]string) error { return nil }, ""),
	aboutNodes(tool{
		name: "list_unhealthy_nodes", about: "The nodes that jobs should be kept off, with the reasons.",
	}, func(d *query.NodesDoc, _ map[string]string) error {
		narrow(d, func(n fleet.NodeState) bool { return n.Unhealthy })
		return nil
	}, "no node is unhealthy\n"),
	aboutNodes(tool{
		name: "explain_node", about: "One node of the fleet: its state, and every finding about it.",
		arguments: []argument{{"node", "its name", true}},
	}, func(d *query.NodesDoc, given map[string]string) error {
		narrow(d, func(n fleet.NodeState) bool { return string(n.Name) == given["node"] })
		if len(d.Nodes) == 0 {
			return fmt.Errorf("no node %.60q in the fleet; get_fleet_status lists them", given["node"])
		}
		return nil
	}, ""),
	of(tool{
		name:  "predict_collective",
		about: "How long a collective takes on a cluster, with its error bar, and what limits it.",
		arguments: []argument{
			{"cluster", "a preset with a number of nodes, such as dgx-h100:4, or a file that describes a cluster", true},
			{"op", "all_reduce (default), all_gather, reduce_scatter, broadcast, all_to_all, …", false},
			{"size", "such as 1G, or several: 64M,1G", true},
			{"layout", "nodes and GPUs per node, such as 2x8", false},
			{"nccl", "NCCL's release, such as 2.28", false},
		},
	}, ask.Named("predict")),
	of(tool{
		name:  "diagnose_log",
		about: "Why a job is slow, broken or hung: the likeliest cause with its evidence, fix and check.",
		arguments: []argument{
			{"text", "the log, or a sentence about what is seen", false}, {"path", "a file or folder instead", false},
		},
		ask: func(ctx context.Context, question any, env query.Env, given map[string]string) (any, error) {
			q := question.(*query.Doctor)
			switch text, path := given["text"], given["path"]; {
			case (text == "") == (path == ""):
				return nil, errors.New("diagnose_log: expected text or path, one of them")
			case text != "":
				env.Stdin, q.Sources = strings.NewReader(text), []string{"-"}
			default:
				if _, err := os.Stat(path); err != nil { // a sentence is text
					return nil, fmt.Errorf("diagnose_log: path: %w", err)
				}
				q.Sources = []string{path}
			}
			return q.Run(ctx, env)
		},
	}, ask.Named("doctor")),
}
