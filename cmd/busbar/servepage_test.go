package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/cookiejar"
	neturl "net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
)

// served starts a server of a page and gives what asks it, and what ends it in order.
func served(t *testing.T, data string, flags ...string) (ask func(path string) (int, []byte), end func()) {
	t.Helper()
	ctx, stop := context.WithCancelCause(t.Context())
	out, in := io.Pipe()
	var said bytes.Buffer
	ended := make(chan int, 1)
	go func() {
		ended <- run(ctx, strings.NewReader(""), in, &said,
			append([]string{"serve", "--listen", "127.0.0.1:0", "--data", data}, flags...))
		in.Close()
	}()
	lines := bufio.NewScanner(out)
	url, token := "", ""
	for lines.Scan() {
		if at, ok := strings.CutPrefix(lines.Text(), "open "); ok {
			url, token, _ = strings.Cut(at, "/login#")
			break
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	if token == "" {
		t.Fatalf("no address was printed: %s", &said)
	}
	client := http.Client{}
	client.Jar, _ = cookiejar.New(nil)
	if res, err := client.PostForm(url+"/login", neturl.Values{"token": {token}}); err != nil || res.StatusCode != 200 {
		t.Fatalf("logging in: %v %v", res, err)
	}
	ask = func(path string) (int, []byte) {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		res, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		data, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, data
	}
	return ask, func() {
		stop(interrupted{syscall.SIGTERM})
		select {
		case code := <-ended:
			if code != exitDone {
				t.Errorf("told to stop, it exits with %d: %s", code, &said)
			}
		case <-time.After(eventually.Limit):
			t.Error("told to stop, it does not")
		}
	}
}

// TestServedAlone serves the page without a fleet: no port for agents is taken, and no store is made.
func TestServedAlone(t *testing.T) {
	data, bus := t.TempDir(), freeport.Address(t)
	ask, end := served(t, data, "--no-fleet", "--bus-listen", bus)
	if code, text := ask("/api/me"); code != 200 || !bytes.Contains(text, []byte(`"fleet": false`)) {
		t.Errorf("%d %s", code, text)
	}
	if code, text := ask("/api/predict?c=dgx-h100:2&size=1G"); code != 200 {
		t.Errorf("%d %.200s", code, text)
	}
	if code, _ := ask("/api/fleet/nodes"); code != 404 {
		t.Errorf("the fleet's route: %d", code)
	}
	if c, err := net.Dial("tcp", bus); err == nil {
		c.Close()
		t.Error("the port of agents is taken")
	}
	if _, err := os.Stat(filepath.Join(data, "bus")); err == nil {
		t.Error("a store is made")
	}
	end()
}

// TestServedPage asks a running server what the page asks.
func TestServedPage(t *testing.T) {
	ask, end := served(t, t.TempDir(), "--bus-listen", freeport.Address(t))
	for _, c := range []struct {
		path string
		code int
	}{
		{"/api/map", 200},
		{"/api/map?c=dgx-h100:4", 200},
		{"/api/map?c=baskerville:2&audit=1", 200}, // finds something
		{"/api/predict?c=dgx-h100:2&size=1G&algo=each", 200},
		{"/api/step?c=dgx-h100:2&m=llama2-7b&parallel=zero%3D3&set=network.gbps%3D200&set=nics_per_node%3D4", 200},
		{"/api/need?c=dgx-h100:2&m=llama2-7b", 200},
		{"/api/scale?c=dgx-h100&m=llama2-7b&nodes=16", 200},
		{"/api/envelope?c=dgx-h100:2&m=llama2-7b", 200},
		{"/api/plan?c=dgx-h100:1&m=gpt2&global-batch=64&top=2", 200},
		{"/api/plan/files?c=dgx-h100:1&m=gpt2&global-batch=64&list=1", 200},
		{"/api/presets", 200},
		{"/api/models", 200},
		{"/api/hardware?words=gpu", 200},
		{"/api/version", 200},
		{"/api/map?c=/etc/passwd", 400},
		{"/api/map?c=../x", 400},
		{"/api/map?c=host%3D/etc/passwd", 400},
		{"/api/map?c=nothing-of-that-name:4", 400},
		{"/api/map?c=gb200-nvl72:20000", 422},
		{"/api/map?c=dgx-h100:999999", 422},
		{"/api/step?c=dgx-h100:2&m=/etc/passwd", 400},
		{"/api/step?c=dgx-h100:2&m=../x.json", 400},
		{"/api/step?c=dgx-h100:2&m=params%3D1e999", 400},
		{"/api/predict?c=dgx-h100:2&op=format_disk", 400},
		{"/api/predict?c=dgx-h100:2&nccl=99", 400},
		{"/api/predict?c=dgx-h100:2&l=99999x99999", 400},
	} {
		code, text := ask(c.path)
		if code != c.code || !json.Valid(text) {
			t.Errorf("%s: %d, expected %d\n%.300s", c.path, code, c.code, text)
		}
		if bytes.Contains(text, []byte("root:")) {
			t.Errorf("%s: a file of this machine is told", c.path)
		}
	}
	for _, path := range []string{
		"/api/map?c=dgx-h100:2&o=svg", "/api/step?c=dgx-h100:2&m=llama2-7b&o=svg", "/api/predict?c=dgx-h100:2&o=svg",
	} {
		if code, text := ask(path); code != 200 || !bytes.HasPrefix(text, []byte("<svg")) {
			t.Errorf("%s: %d %.100s", path, code, text)
		}
	}
	end()
}
