// Package rdma runs the programs of linux-rdma/perftest (ib_write_bw, ib_read_lat and their siblings): one side of a
// test at a time, the server first. Who runs both sides says how programs are started (Start).
//
// The package is not promised: names may change between releases.
package rdma

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"busbar.dev/input/perftest"
	"busbar.dev/internal/texttab"
	"busbar.dev/unit"
)

// Start runs a program until it ends, for at most a time, or the context does; w gets what it prints.
type Start func(ctx context.Context, limit time.Duration, args []string, w io.Writer) error

// Program is the name of the program of a verb, for latencies or for bandwidth.
func Program(verb string, latency bool) string {
	if latency {
		return "ib_" + verb + "_lat"
	}
	return "ib_" + verb + "_bw"
}

// Test is what both sides run.
type Test struct {
	Program string // its path
	Latency bool
	Both    bool // both directions at once
	Size    unit.Bytes
	Iters   int
	QPs     int
	GID     int // index, below 0: perftest's choice
}

// End is one side of a test.
type End struct {
	Device string // mlx5_0
	Port   int
	GPU    int // whose memory is used, below 0: the host's
}

// Args is the command line of a side. The server's has no address.
func (t *Test) Args(e End, tcp int, server string) []string {
	args := []string{
		t.Program, "-F", "-d", e.Device, "-i", strconv.Itoa(e.Port), "-p", strconv.Itoa(tcp), "-s",
		strconv.FormatInt(int64(t.Size), 10), "-n", strconv.Itoa(t.Iters),
	}
	if t.GID >= 0 {
		args = append(args, "-x", strconv.Itoa(t.GID))
	}
	if !t.Latency {
		args = append(args, "--report_gbits", "-q", strconv.Itoa(t.QPs))
	}
	if t.Both {
		args = append(args, "-b")
	}
	if e.GPU >= 0 {
		args = append(args, fmt.Sprintf("--use_cuda=%d", e.GPU))
	}
	if server != "" {
		args = append(args, server)
	}
	return args
}

// Server is a side that waits for its client.
type Server struct {
	TCP    int // the port at which it does
	cancel context.CancelFunc
	done   chan struct{}
	out    output
	err    error
}

// Patience with a server: how many ports are tried, how often it is looked at, and how long it has to end once its
// client has.
const (
	tryPorts  = 3
	lookEvery = 10 * time.Millisecond
	endTime   = 2 * time.Second
	testTime  = time.Hour // who runs a test has a limit of its own
)

// Serve starts the server of a test and waits until it listens, or the context ends. It runs until End.
func Serve(ctx context.Context, start Start, t Test, e End) (*Server, error) {
	var err error
	for range tryPorts { // another program may be faster to take a port
		var s *Server
		if s, err = serve(ctx, start, t, e); err == nil || ctx.Err() != nil ||
			!strings.Contains(err.Error(), "Couldn't listen") {
			return s, err
		}
	}
	return nil, err
}

func serve(ctx context.Context, start Start, t Test, e End) (*Server, error) {
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	l.Close()
	run, cancel := context.WithCancel(context.WithoutCancel(ctx))
	s := &Server{TCP: port, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(s.done)
		s.err = start(run, testTime, t.Args(e, port, ""), &s.out)
	}()
	look := time.NewTicker(lookEvery)
	defer look.Stop()
	for {
		select {
		case <-s.done:
			cancel()
			return nil, s.out.why(t.Program, fmt.Errorf("the server ended before its client came: %v", s.err))
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

// End ends the server: by itself where its client has, by force otherwise. It says what the server has to say of a test
// that failed.
func (s *Server) End(failed bool) error {
	defer s.cancel()
	if !failed {
		select {
		case <-s.done:
		case <-time.After(endTime):
		}
	}
	s.cancel()
	<-s.done
	return s.out.why("the server", nil)
}

// Run is the client's side: what the program printed of the test.
func Run(ctx context.Context, start Start, t Test, e End, server string, tcp int) (*perftest.Row, error) {
	var out output
	err := start(ctx, testTime, t.Args(e, tcp, server), &out)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, out.why(t.Program, err)
	}
	for _, x := range perftest.Read(out.bytes()) {
		for i := range x.Rows {
			if r := &x.Rows[i]; x.Latency == t.Latency && x.Both == t.Both && r.Size == t.Size {
				return r, nil
			}
		}
	}
	return nil, out.why(t.Program, errors.New("it printed no row of the size that was asked for"))
}

// output is what a program prints, its beginning.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

const mostOutput = 1 << 20

// Write keeps the beginning.
func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.buf.Write(p[:min(len(p), mostOutput-min(o.buf.Len(), mostOutput))])
	return len(p), nil
}

func (o *output) bytes() []byte {
	o.mu.Lock()
	defer o.mu.Unlock()
	return bytes.Clone(o.buf.Bytes())
}

// why is an error with the program's own words: the lines that are no part of a report. nil where there is neither.
func (o *output) why(program string, err error) error {
	var said []string
	for raw := range bytes.Lines(o.bytes()) {
		line := strings.TrimSpace(texttab.Clean(string(raw)))
		if line == "" || reported(line) {
			continue
		}
		if said = append(said, line[:min(len(line), 200)]); len(said) == 3 {
			break
		}
	}
	switch {
	case len(said) > 0 && err != nil:
		return fmt.Errorf("%s: %s (%w)", filepath.Base(program), strings.Join(said, "; "), err)
	case len(said) > 0:
		return fmt.Errorf("%s: %s", filepath.Base(program), strings.Join(said, "; "))
	case err != nil:
		return fmt.Errorf("%s: %w", filepath.Base(program), err)
	}
	return nil
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
