//go:build unix

package main

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"busbar.dev/input/nccltests"
	"busbar.dev/internal/test/eventually"
	"busbar.dev/query"
)

// rankLine is where the table's head names a rank's process.
var rankLine = regexp.MustCompile(`^#  Rank +(\d+) Group +0 Pid +(\d+) `)

// TestBenchElastic kills ranks that the command has started, rank 0 among them: the others
// finish the table, and say who left.
func TestBenchElastic(t *testing.T) {
	t.Parallel()
	file := built(t)
	for _, how := range []string{"auto", "tcp"} {
		text, lost := "", 0
		for _, factor := range []string{"1.2", "1.02", "1.002"} { // on a busy machine a kill may come when a short table is done: then a longer one
			if text, lost = killedElastic(t, file, how, factor); lost == 2 {
				break
			}
		}
		if lost != 2 {
			t.Errorf("%s: %d of the two that were killed are said to have left:\n%s", how, lost, text)
		}
		if !strings.Contains(text, "# Out of bounds values : 0 OK\n") {
			t.Errorf("%s:\n%s", how, text)
		}
		r, err := nccltests.ReadOutput("bench", strings.NewReader(text))
		if err != nil || len(r.Tables) != 1 || len(r.Tables[0].Sweeps[0].Points) < 15 {
			t.Errorf("%s: the table is not read (%v):\n%s", how, err, text)
		}
	}
}

// killedElastic kills ranks 0 and 3 of six after rows 2 and 4 of a table, and returns it and how many of them it says have left.
func killedElastic(t *testing.T, file, how, factor string) (text string, lost int) {
	t.Helper()
	compress := map[string]string{"auto": "none", "tcp": "bf16"}[how]
	cmd := exec.Command(file, "bench", "-n", "6", "--elastic", "--check", "--transport", how, "--compress", compress, "-b", "4K", "-e", "64K", "-f", factor, "--iters", "8", "--timeout", "20s")
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	pids := map[int]int{}
	rows := 0
	for s := bufio.NewScanner(out); s.Scan(); {
		fmt.Fprintln(&table, s.Text())
		if m := rankLine.FindStringSubmatch(s.Text()); m != nil {
			r, _ := strconv.Atoi(m[1])
			pids[r], _ = strconv.Atoi(m[2])
		}
		if !strings.HasPrefix(s.Text(), "#") {
			if rows++; rows == 2 || rows == 4 {
				syscall.Kill(pids[map[int]int{2: 0, 4: 3}[rows]], syscall.SIGKILL)
			}
		}
	}
	err = cmd.Wait()
	text = table.String()
	for _, pid := range []int{pids[0], pids[3]} {
		if strings.Contains(text, fmt.Sprintf("pid %d) left: it ", pid)) {
			lost++
		}
	}
	if err != nil && lost == 2 {
		t.Fatalf("%s: %v\n%s%s", how, err, text, errs.String())
	}
	return text, lost
}

// TestBenchNewcomer: ranks by hand under TLS, one of which is lost, and a newcomer.
func TestBenchNewcomer(t *testing.T) {
	t.Parallel()
	for _, factor := range []string{"1.1", "1.02", "1.002"} { // on a busy machine a newcomer may come when a short table is done: then to a longer one
		if newcomer(t, factor) {
			return
		}
	}
	t.Error("the job always ended before the newcomer could join")
}

// newcomer is whether a newcomer came in time for a table.
func newcomer(t *testing.T, factor string) bool {
	t.Helper()
	file := built(t)
	dir := t.TempDir()
	cert := selfSigned(t, dir)
	args := []string{"bench", "--elastic", "--check", "--op", "all_gather", "-b", "4K", "-e", "256K", "-f", factor, "--timeout", "30s", "--iters", "10", "--transport", "tcp", "--bind", "127.0.0.1", "--meet", filepath.Join(dir, "meet"), "--tls-cert", cert[0], "--tls-key", cert[1], "--tls-ca", cert[0]}
	var ranks []*exec.Cmd
	outs := make([]written, 4)
	start := func(more ...string) {
		cmd := exec.Command(file, append(args, more...)...)
		cmd.Env = append(os.Environ(), "BUSBAR_SECRET=x")
		cmd.Stdout, cmd.Stderr = io.Writer(&outs[len(ranks)]), os.Stderr
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		ranks = append(ranks, cmd)
		t.Cleanup(func() { cmd.Process.Kill() })
	}
	for r := range 3 {
		more := []string{"-n", "3", "--rank", strconv.Itoa(r)}
		if r > 0 { // rank 0 prints a table, which shows how far they are
			more = append(more, "--json")
		}
		start(more...)
	}
	row := regexp.MustCompile(`(?m)^ +\d+ +\d+ `)
	eventually.Holds(t, "the first row", func() bool { return row.MatchString(outs[0].String()) })
	start("--json")
	ended := func() bool { return strings.Contains(outs[0].String(), "Out of bounds values") }
	joins := func() bool { return strings.Contains(outs[0].String(), " joined") }
	eventually.Holds(t, "the newcomer has joined, or the job has ended", func() bool { return joins() || ended() })
	ranks[0].Process.Kill()
	if !joins() || ended() {
		for _, cmd := range ranks {
			cmd.Process.Kill()
			_ = cmd.Wait()
		}
		return false
	}
	for i, cmd := range ranks {
		if err := cmd.Wait(); err != nil && i > 0 {
			t.Errorf("rank %d: %v", i, err)
		}
	}
	var doc query.BenchDoc
	if err := json.Unmarshal([]byte(outs[1].String()), &doc); err != nil {
		t.Fatalf("%v: %s", err, outs[1].String())
	}
	left, joined := 0, 0
	for _, c := range doc.Changes {
		left += len(c.Left)
		joined += len(c.Joined)
	}
	for _, r := range doc.Rows {
		if r.Wrong != 0 || r.InPlace.Wrong != 0 || r.Ranks < 2 || r.Ranks > 4 {
			t.Errorf("%+v", r)
		}
	}
	if left == 0 {
		return false // the last row was done when rank 0 was killed
	}
	if left != 1 || joined != 1 {
		t.Errorf("%d left and %d joined: %+v", left, joined, doc.Changes)
	}
	return true
}

// selfSigned is a certificate that is its own authority, and its key.
func selfSigned(t *testing.T, dir string) [2]string {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	x := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "busbar"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, x, x, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	names := [2]string{filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")}
	for i, b := range []*pem.Block{{Type: "CERTIFICATE", Bytes: der}, {Type: "EC PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(names[i], pem.EncodeToMemory(b), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return names
}
