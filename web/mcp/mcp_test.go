package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"busbar.dev/finding"
	"busbar.dev/fleet"
	"busbar.dev/query"
)

// fake is a fleet of two nodes, one of them bad.
type fake struct{ refuses bool }

func (f fake) Call(_ context.Context, method, path string, _, out any) error {
	if f.refuses {
		return errors.New("the token may not read")
	}
	if method != "GET" {
		return fmt.Errorf("%s %s would change something", method, path)
	}
	switch d := out.(type) {
	case *fleet.NodesReply:
		d.Nodes = []fleet.NodeState{{Name: "n1", State: fleet.NodeUp}, {Name: "n2", State: fleet.NodeUp, Unhealthy: true}}
	case *fleet.FindingsReply:
		d.Findings = []finding.Finding{
			{ID: "slow-node:n2", Severity: finding.Error, Text: "n2 is slow", Nodes: []string{"n2"}},
			{ID: "slow-leaf:l", Severity: finding.Warn, Text: "the leaf is slow", Nodes: []string{"n1", "n2"}},
		}
	}
	return nil
}

// asked is what a server answers to lines.
func asked(t testing.TB, f fleet.Server, lines ...string) (list []response) {
	t.Helper()
	var out bytes.Buffer
	s := Server{Version: "test", Env: func() query.Env { return query.Env{Fleet: f, Stdin: strings.NewReader("secret")} }}
	if err := s.Serve(t.Context(), strings.NewReader(strings.Join(lines, "\n")+"\n"), &out); err != nil {
		t.Fatal(err)
	}
	for dec := json.NewDecoder(&out); dec.More(); {
		var r response
		if err := dec.Decode(&r); err != nil {
			t.Fatal(err)
		}
		list = append(list, r)
	}
	return list
}

func call(name, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, name, arguments)
}

func TestTools(t *testing.T) {
	for _, c := range []struct {
		name, arguments, want string
		failed                bool
	}{
		{"get_fleet_status", `{}`, "the leaf is slow", false},
		{"list_unhealthy_nodes", `{}`, "n2 is slow", false},
		{"explain_node", `{"node":"n1"}`, "the leaf is slow", false},
		{"explain_node", `{"node":"n9"}`, `no node \"n9\"`, true},
		{"explain_node", `{}`, "node is missing", true},
		{"predict_collective", `{"cluster":"dgx-h100:2","size":"1G"}`, "nvls_tree", false},
		{"predict_collective", `{"cluster":"-","size":"1G"}`, "standard input", true},
		{"predict_collective", `{"cluster":"dgx-h100:2","size":"1G","set":"nic=1G"}`, "no argument", true},
		{"predict_collective", `{"cluster":{"a":1},"size":"1G"}`, "expected a string", true},
		{"diagnose_log", `{"text":"NCCL WARN Call to ibv_reg_mr failed, Cannot allocate memory"}`, "memlock", false},
		{"diagnose_log", `{"text":"a","path":"b"}`, "one of them", true},
		{"diagnose_log", `{"path":"no such file.log"}`, "no such file", true},
	} {
		r := asked(t, fake{}, call(c.name, c.arguments))
		text, _ := json.Marshal(r[0].Result)
		if got := bytes.Contains(text, []byte(`"isError":true`)); got != c.failed || !bytes.Contains(text, []byte(c.want)) {
			t.Errorf("%s %s: %s; want %q", c.name, c.arguments, text, c.want)
		}
		if bytes.Contains(text, []byte("secret")) {
			t.Errorf("%s %s: the client's own words are read as input", c.name, c.arguments)
		}
	}
	healthy, _ := json.Marshal(asked(t, fake{}, call("list_unhealthy_nodes", `{}`))[0].Result)
	if bytes.Contains(healthy, []byte(`"name":"n1"`)) {
		t.Errorf("n1 is not unhealthy: %s", healthy)
	}
	// Who may not look has not seen that all is well.
	refused, _ := json.Marshal(asked(t, fake{refuses: true}, call("list_unhealthy_nodes", `{}`))[0].Result)
	if !bytes.Contains(refused, []byte(`"isError":true`)) || !bytes.Contains(refused, []byte("may not read")) {
		t.Errorf("%s", refused)
	}
}

func TestProtocol(t *testing.T) {
	r := asked(t, fake{},
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18"}}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ``,
		`{"jsonrpc":"2.0","id":"a","method":"server/discover"}`, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`,
		`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"forget_node"}}`,
		`{"jsonrpc":"2.0","id":4,"method":"resources/list"}`, `[]`, `{`, `{"jsonrpc":"1.0","id":5,"method":"ping"}`)
	if len(r) != 8 {
		t.Fatalf("%d answers: %+v", len(r), r)
	}
	if got := r[0].Result.(object)["protocolVersion"]; got != "2025-06-18" {
		t.Errorf("revision %v", got)
	}
	list := r[2].Result.(object)["tools"].([]any)
	if len(list) != 5 {
		t.Errorf("%d tools", len(list))
	}
	for _, x := range list {
		if x.(object)["annotations"].(object)["readOnlyHint"] != true {
			t.Errorf("%v does more than read", x)
		}
	}
	for i, code := range map[int]int{3: -32602, 4: -32601, 5: -32600, 6: -32600, 7: -32600} {
		if r[i].Error == nil || r[i].Error.Code != code {
			t.Errorf("answer %d: %+v, want code %d", i, r[i].Error, code)
		}
	}
}

// FuzzAnswer: every line is answered with one line of JSON or with none, and changes nothing.
func FuzzAnswer(f *testing.F) {
	f.Add([]byte(call("explain_node", `{"node":"n1"}`)))
	f.Add([]byte(call("predict_collective", `{"cluster":"dgx-h100:2","size":1048576}`)))
	f.Add([]byte(`{"jsonrpc":"2.0","id":{},"method":"tools/list","params":{"arguments":null}}`))
	s := Server{Env: func() query.Env { return query.Env{Fleet: fake{}} }}
	f.Fuzz(func(t *testing.T, line []byte) {
		if bytes.Contains(line, []byte("path")) || bytes.Contains(line, []byte("cluster")) {
			return // names of this machine's files
		}
		if r := s.answer(t.Context(), line); r != nil {
			if _, err := json.Marshal(r); err != nil {
				t.Error(err)
			}
		}
	})
}
