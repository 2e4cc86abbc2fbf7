package measure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"busbar.dev/engine/ranks"
	"busbar.dev/input/perftest"
	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
)

// perfProgram is the name of the program of a verb, for latencies or for bandwidth: ib_write_bw, ib_read_lat and their
// siblings.
func perfProgram(verb string, latency bool) string {
	if latency {
		return "ib_" + verb + "_lat"
	}
	return "ib_" + verb + "_bw"
}

// perfTest is what both sides of a test run, and perfEnd one of them.
type (
	perfTest struct{ latency, both bool } // both directions at once
	perfEnd  struct {
		device string // mlx5_0
		port   int
		gpu    int // whose memory is used, below 0: the host's
	}
)

// size is that of a test's messages.
func (p *Perftest) size(t perfTest) unit.Bytes {
	if t.latency {
		return p.Small
	}
	return p.Size
}

// args is the command line of a side. The server's has no address.
func (p *Perftest) args(t perfTest, e perfEnd, tcp int, server ...string) []string {
	args := []string{
		p.paths[t.latency], "-F", "-d", e.device, "-i", strconv.Itoa(e.port), "-p", strconv.Itoa(tcp), "-s",
		strconv.FormatInt(int64(p.size(t)), 10), "-n", strconv.Itoa(p.Iters),
	}
	if p.GID >= 0 {
		args = append(args, "-x", strconv.Itoa(p.GID))
	}
	if !t.latency {
		args = append(args, "--report_gbits", "-q", strconv.Itoa(p.QPs))
	}
	if t.both {
		args = append(args, "-b")
	}
	if e.gpu >= 0 {
		args = append(args, fmt.Sprintf("--use_cuda=%d", e.gpu))
	}
	return append(args, server...)
}

// perfServer is a side that waits for its client.
type perfServer struct {
	tcp    int // the port at which it does
	cancel context.CancelFunc
	done   chan struct{}
	out    ranks.Printed
	err    error
}

// Patience with a server: how many ports are tried, how often it is looked at, and how long it has to end once its
// client has.
const (
	tryPorts  = 3
	lookEvery = 10 * time.Millisecond
	endTime   = 2 * time.Second
	testTime  = time.Hour // who runs a test has a limit of its own
	mostSaid  = 1 << 20   // bytes of what a program prints
)

// serve starts the server of a test and waits until it listens, or the context ends. It runs until its end.
func (p *Perftest) serve(ctx context.Context, t perfTest, e perfEnd) (s *perfServer, err error) {
	for range tryPorts { // another program may be faster to take a port
		if s, err = p.serveOnce(ctx, t, e); err == nil || ctx.Err() != nil ||
			!strings.Contains(err.Error(), "Couldn't listen") {
			break
		}
	}
	return s, err
}

func (p *Perftest) serveOnce(ctx context.Context, t perfTest, e perfEnd) (*perfServer, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &perfServer{tcp: port, cancel: cancel, done: make(chan struct{}), out: ranks.Printed{Most: mostSaid}}
	go func() {
		defer close(s.done)
		s.err = p.With.Run(run, testTime, p.args(t, e, port), &s.out)
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-s.done:
			cancel()
			return nil, said(&s.out, p.paths[t.latency], fmt.Errorf("the server ended before its client came: %v", s.err))
		case <-ctx.Done():
			cancel()
			<-s.done
			return nil, context.Cause(ctx)
		case <-look.C:
			if listens(port) {
				return s, nil
			}
		}
	}
}

// end ends the server: by itself where its client has, by force otherwise. It says what the server has to say of a test
// that failed.
func (s *perfServer) end(failed bool) error {
	if !failed {
		select {
		case <-s.done:
		case <-time.After(endTime):
		}
	}
	s.cancel()
	<-s.done
	return said(&s.out, "the server", nil)
}

// listens tells whether a program of this machine listens at a TCP port. It asks the kernel: a connection would be
// taken for the client's, and what a program prints reaches a pipe only when it ends.
func listens(port int) bool {
	end := fmt.Sprintf(":%04X", port)
	for _, name := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, _ := os.ReadFile(name) // a machine may have one of them
		for line := range strings.Lines(string(data)) {
			if w := strings.Fields(line); len(w) > 3 && w[3] == "0A" && strings.HasSuffix(w[1], end) {
				return true
			}
		}
	}
	return false
}

// client is the client's side: what the program printed of the test.
func (p *Perftest) client(ctx context.Context, t perfTest, e perfEnd, server string, tcp int) (*perftest.Row, error) {
	out := ranks.Printed{Most: mostSaid}
	err := p.With.Run(ctx, testTime, p.args(t, e, tcp, server), &out)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err == nil {
		for _, x := range perftest.Read(out.Bytes()) {
			for i := range x.Rows {
				if r := &x.Rows[i]; x.Latency == t.latency && x.Both == t.both && r.Size == p.size(t) {
					return r, nil
				}
			}
		}
		err = errors.New("it printed no row of the size that was asked for")
	}
	return nil, said(&out, p.paths[t.latency], err)
}

// said is an error with the program's own words: the lines that are no part of a report. nil where there is neither.
func said(out *ranks.Printed, program string, err error) error {
	var list []string
	for raw := range strings.Lines(out.String()) {
		line := strings.TrimSpace(texttab.Clean(raw))
		if line != "" && !reported(line) && len(list) < 3 {
			list = append(list, line[:min(len(line), 200)])
		}
	}
	if text := strings.Join(list, "; "); text != "" && err != nil {
		err = fmt.Errorf("%s (%w)", text, err)
	} else if text != "" {
		err = errors.New(text)
	}
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w", filepath.Base(program), err)
}

// reported tells the lines of a report from what a program has to complain of.
func reported(line string) bool {
	for _, begin := range []string{
		"-", "*", "#", "local address", "remote address", "GID:", "WARNING", "Conflicting CPU", "Waiting for client",
	} {
		if strings.HasPrefix(line, begin) {
			return true
		}
	}
	return line[0] >= '0' && line[0] <= '9' || strings.HasSuffix(line, " Test") || strings.Contains(line, " : ") ||
		strings.Contains(line, ": ON") || strings.Contains(line, ": OFF")
}
