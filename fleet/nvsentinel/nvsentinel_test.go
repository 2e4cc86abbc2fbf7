package nvsentinel

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// env is an environment as NVSentinel's preflight sets it.
func env(more ...string) func(string) string {
	m := map[string]string{"NODE_NAME": "gpu-7", "POD_NAME": "w-1", "PROCESSING_STRATEGY": "EXECUTE_REMEDIATION"}
	for i := 0; i < len(more); i += 2 {
		m[more[i]] = more[i+1]
	}
	return func(k string) string { return m[k] }
}

// gangFolder writes a gang's ConfigMap.
func gangFolder(t testing.TB, keys ...string) string {
	t.Helper()
	dir := t.TempDir()
	for i := 0; i < len(keys); i += 2 {
		if err := os.WriteFile(filepath.Join(dir, keys[i]), []byte(keys[i+1]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestGang(t *testing.T) {
	peers := "w-0;10.0.0.1;0\nw-1;10.0.0.2;1;nccl,busbar\n"
	for _, c := range []struct {
		keys []string
		want Gang
		err  string
	}{
		{[]string{"expected_count", "2", "peers", peers, "master_addr", "10.0.0.1"}, Gang{1, 2, "10.0.0.1", "29500"}, ""},
		{[]string{"expected_count", "2\n", "peers", peers, "master_port", "4000"}, Gang{1, 2, "10.0.0.1", "4000"}, ""},
		{[]string{"expected_count", "3", "peers", peers}, Gang{}, "2 of 3 pods of the gang came within"},
		{[]string{}, Gang{}, "0 of 0 pods"},
		{[]string{"expected_count", "many"}, Gang{}, "expected a number of pods"},
		{[]string{"expected_count", "-1"}, Gang{}, "expected a number of pods"},
		{[]string{"expected_count", "2", "peers", "w-0;10.0.0.1;0\nw-1;10.0.0.2;0"}, Gang{}, "each once"},
		{
			[]string{"expected_count", "2", "peers", "w-0;10.0.0.1;0\nw-2;10.0.0.2;1"},
			Gang{},
			`rank of pod "w-1" among them is -1`,
		},
		{[]string{"expected_count", "1", "peers", peers}, Gang{}, "of 1 ranks, each once"},
		{[]string{"expected_count", "2", "peers", "w-0;host$(x);0\nw-1;10.0.0.2;1"}, Gang{}, "expected POD;ADDRESS;RANK"},
		{[]string{"expected_count", "2", "peers", "w-1;10.0.0.1;0\nw-1;10.0.0.2;1"}, Gang{}, "each once"},
		{[]string{"expected_count", "2", "peers", "w-0;10.0.0.1;0\nw-1;10.0.0.2;5"}, Gang{}, "of 2 ranks"},
		{[]string{"expected_count", "2", "peers", peers, "master_addr", "$(id)"}, Gang{}, "expected an address"},
		{[]string{"expected_count", "2", "peers", peers, "master_port", "0"}, Gang{}, "expected 1 to 65535"},
	} {
		p, err := Read(env("GANG_ID", "g", "GANG_CONFIG_DIR", gangFolder(t, c.keys...)))
		if err != nil {
			t.Fatal(err)
		}
		p.patient = time.Millisecond
		switch g, err := p.Meet(t.Context()); {
		case err == nil && g != c.want:
			t.Errorf("%q: %+v, want %+v", c.keys, g, c.want)
		case (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err):
			t.Errorf("%q: %v, want %q", c.keys, err, c.err)
		}
	}
	if p, err := Read(env()); err != nil || p.gang != "" {
		t.Errorf("%+v %v", p, err)
	}
	for _, bad := range [][]string{
		{"NODE_NAME", ""},
		{"GANG_ID", "g", "POD_NAME", ""},
		{"GANG_ID", "g", "GANG_TIMEOUT_SECONDS", "soon"},
		{"PROCESSING_STRATEGY", "BOTH"},
	} {
		if _, err := Read(env(bad...)); err == nil {
			t.Errorf("%q is taken", bad)
		}
	}
}

// TestReport: an event comes as one call, and what is not taken is an error. tools/contracts has gRPC's own server.
func TestReport(t *testing.T) {
	status, came := "0", []byte{}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	s := http.Server{Protocols: &protocols, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		came, _ = io.ReadAll(r.Body)
		w.Header().Set("Content-Type", "application/grpc")
		w.Header().Set("Trailer", "Grpc-Status, Grpc-Message")
		w.WriteHeader(http.StatusOK)
		w.Header().Set("Grpc-Status", status)
		w.Header().Set("Grpc-Message", "no room")
	})}
	go func() { _ = s.Serve(l) }()
	defer s.Close()
	p, err := Read(env("PLATFORM_CONNECTOR_SOCKET", "unix://"+socket))
	if err != nil {
		t.Fatal(err)
	}
	event := Event{Fatal: true, Message: "unhealthy: " + strings.Repeat("é", 4000), Codes: []string{Code("slow-node")}}
	if err := p.Report(t.Context(), event); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"gpu-7", Check, "BUSBAR_SLOW_NODE"} {
		if !bytes.Contains(came, []byte(want)) {
			t.Errorf("no %s in the event", want)
		}
	}
	status = "8"
	if err := p.Report(t.Context(), event); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("an event that is refused: %v", err)
	}
	s.Close()
	if err := p.Report(t.Context(), event); err == nil {
		t.Error("an event that nobody hears is no error")
	}
}

// FuzzGang: a ConfigMap gives a rank of the gang, or an error.
func FuzzGang(f *testing.F) {
	f.Add("2", "w-0;10.0.0.1;0\nw-1;10.0.0.2;1", "10.0.0.1", "29500")
	f.Add("1", "w-1;::1;0", "", "")
	f.Fuzz(func(t *testing.T, count, peers, addr, port string) {
		p, err := Read(env("GANG_ID", "g", "GANG_CONFIG_DIR", gangFolder(t, "expected_count", count, "peers", peers,
			"master_addr", addr, "master_port", port)))
		if err != nil {
			t.Fatal(err)
		}
		if g, known, err := p.readGang(); err == nil && known == g.Size && known > 0 && (g.Rank < 0 || g.Rank >= g.Size) {
			t.Errorf("%+v", g)
		}
	})
}
