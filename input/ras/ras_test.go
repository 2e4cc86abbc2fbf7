package ras

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/synth/livejob"
)

func TestJSONWithAndWithoutComma(t *testing.T) {
	j := &livejob.Job{Ranks: 8, TP: 2, Steps: 5, Fault: livejob.Stopped, Culprit: 5}
	for _, broken := range []bool{false, true} {
		r, err := Read("x", []byte("SERVER PROTOCOL 2\nOK\n"+j.RAS("2026-11-16 02:00:05", broken)))
		if err != nil {
			t.Fatal(err)
		}
		missing, counted := 0, uint64(0)
		for _, c := range r.Comms {
			for _, m := range c.Missing {
				if m.PID != 10005 || m.Host != "10.0.0.1" {
					t.Errorf("%+v", m)
				}
				missing++
			}
			for _, x := range c.Ranks {
				counted += x.Counts[4]
			}
		}
		if len(r.Comms) != 7 || missing != 3 || counted != 7*15 || r.Time == "" {
			t.Errorf("broken %v: %d communicators, %d missing, %d all-reduces", broken, len(r.Comms), missing, counted)
		}
	}
}

func TestText(t *testing.T) {
	j := &livejob.Job{Ranks: 16, TP: 2, Steps: 5, Fault: livejob.Late, Culprit: 9}
	r, err := Read("x", []byte(j.RASText()))
	if err != nil {
		t.Fatal(err)
	}
	if r.Processes != 16 || len(r.Comms) != 1 {
		t.Fatalf("%+v", r)
	}
	c := r.Comms[0]
	if c.Size != 16 || c.Hash != 0x1000 || len(c.Lags) != 2 || c.Lags[0].N != 15 || c.Lags[0].Count != 5 ||
		c.Lags[1].Ranks[0].Rank != 9 || c.Lags[1].Ranks[0].PID != 10009 || c.Lags[1].Op != "AllReduce" {
		t.Fatalf("%+v", c)
	}
}

// older is the text of 2.24: one count for all collectives, missing ranks by number, and rows of zeros.
const older = `NCCL version 2.24.3 compiled with CUDA 12.6
CUDA runtime version 12060, driver version 12060

Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      4          8            1         32       32

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         4       7-8        32        31   RUNNING  INCOMPLETE
    1         8         4         1         4        32   RUNNING      OK
    2         1         0         0         0         0      INIT      OK

Errors
======

INCOMPLETE
  Missing communicator data from 1 job process
  Process 3487984 on node 172.16.64.213 managing GPU 5

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487985 on node 172.16.64.214 managing GPUs 5,6

#0-0 (cf264af53edbe986) INCOMPLETE
  Missing communicator data from 1 rank
  The missing rank: 21

#0-0 (cf264af53edbe986) ERROR
  Asynchronous errors on 3 ranks
  2 ranks reported Remote process error
  Rank 3 -- GPU 3 managed by process 34 on node 172.16.64.210
  Rank 4 -- [process information not found]
  Rank 5 reported Internal error -- GPU 5 managed by process 36 on node 172.16.64.210

Warnings
========

TIMEOUT
  Encountered 2 communication timeouts while gathering communicator data

#0-0 (cf264af53edbe986) MISMATCH
  Communicator ranks have different status
  30 ranks have status RUNNING
  Rank 7 has status UNKNOWN -- GPU 7 managed by process 38 on node 172.16.64.210
  Communicator ranks have different operation counts
  30 ranks have launched up to operation 6
  Rank 0 has not launched any operations -- GPU 0 managed by process 31 on node 172.16.64.210
`

func TestOlderText(t *testing.T) {
	r, err := Read("x", []byte(older))
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Missing) != 2 || r.Missing[0] != (Process{"172.16.64.213", 3487984}) || r.Processes != 32 {
		t.Errorf("%+v", r)
	}
	c := r.Comms[0]
	if len(c.Missing) != 1 || c.Missing[0].Rank != 21 || len(c.Lags) != 2 || c.Lags[1].Count != 0 ||
		c.Lags[1].Ranks[0].PID != 31 || c.Lags[0].Op != "" {
		t.Errorf("%+v", c)
	}
	async := 0
	for _, x := range c.Ranks {
		if x.PeerGone {
			async++
		}
	}
	if async != 2 {
		t.Errorf("%d ranks with an error of a remote process, want 2: %+v", async, c.Ranks)
	}
}

// serve answers connections as the service does; the first silent ones it takes and never answers.
func serve(t *testing.T, silent int, json bool, report string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Skip("cannot listen: ", err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for n := 0; ; n++ {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if n < silent {
				defer c.Close()
				continue
			}
			go func() {
				defer c.Close()
				in := bufio.NewScanner(c)
				for in.Scan() {
					switch line := strings.ToLower(in.Text()); {
					case strings.HasPrefix(line, "client protocol"):
						fmt.Fprintln(c, "SERVER PROTOCOL 2")
					case strings.HasPrefix(line, "set format") && !json:
						fmt.Fprintln(c, "ERROR: Unknown command")
					case strings.HasSuffix(line, "status"):
						fmt.Fprint(c, report)
						return
					default:
						fmt.Fprintln(c, "OK")
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}

func TestAsk(t *testing.T) {
	t.Parallel()
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 3, Fault: livejob.Late, Culprit: 1}
	ctx, stop := context.WithTimeout(t.Context(), eventually.Limit)
	defer stop()
	a := Ask(ctx, serve(t, 2, true, j.RAS("now", false)), 2*time.Second, NewRoom(1<<20))
	if a.Err != nil || a.Silent != 2 || !Match(a.Data) {
		t.Errorf("a stopped process among those that share the port: %v, %d silent, %d bytes", a.Err, a.Silent, len(a.Data))
	}
	a = Ask(ctx, serve(t, 0, false, j.RASText()), eventually.Limit, NewRoom(1<<20))
	if r, err := Read("x", a.Data); a.Err != nil || err != nil || r.JSON {
		t.Errorf("a release without JSON: %v %v", a.Err, err)
	}
	a = Ask(ctx, "127.0.0.1:1", time.Second, NewRoom(1<<20))
	if a.Err == nil {
		t.Error("nobody listens there")
	}
}

func FuzzRead(f *testing.F) {
	j := &livejob.Job{Ranks: 4, TP: 2, Steps: 2, Fault: livejob.Stopped, Culprit: 1}
	f.Add([]byte(j.RAS("now", true)))
	f.Add([]byte(j.RASText()))
	f.Add([]byte(older))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Read("fuzz", data); err != nil && !strings.HasPrefix(err.Error(), "fuzz") {
			t.Errorf("an error without its place: %v", err)
		}
	})
}

// BenchmarkJSON16384 reads the answer of a job of 16,384 ranks.
func BenchmarkJSON16384(b *testing.B) {
	j := &livejob.Job{Ranks: 16384, TP: 8, Steps: 2, Fault: livejob.Late, Culprit: 77}
	data := []byte(j.RAS("2026-11-16 02:00:05", true))
	b.SetBytes(int64(len(data)))
	b.ReportAllocs()
	b.ResetTimer()
	for range b.N {
		if _, err := Read("x", data); err != nil {
			b.Fatal(err)
		}
	}
}

// TestShortReports: what short reports claim costs nothing: a communicator of very many ranks has those that it lists.
func TestShortReports(t *testing.T) {
	var b strings.Builder
	b.WriteString(`{"nccl_version":"2.28.9","communicators_count":1,"communicators":[`)
	for range 4000 {
		b.WriteString(`{"size":1000000,"ranks":[{}]},`)
	}
	b.WriteString(`{"size":1000000000000,"ranks":[{}]}]}`)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	r, err := Read("x", []byte(b.String()))
	runtime.ReadMemStats(&after)
	if err != nil || len(r.Comms) != 4001 || r.Comms[4000].Size != maxRanks {
		t.Fatal(err, len(r.Comms))
	}
	if mb := (after.TotalAlloc - before.TotalAlloc) >> 20; mb > 20 {
		t.Errorf("%d bytes took %d MB", b.Len(), mb)
	}
}

// TestCutOff has answers that list no communicator: they say nothing, which is not that all is well.
func TestCutOff(t *testing.T) {
	j := &livejob.Job{Ranks: 16, TP: 2, Steps: 5}
	text := j.RASText()
	for name, data := range map[string]string{
		"JSON without communicators": `{"nccl_version": "2.28.9", "timestamp": "2026-11-16 02:00:05", "communicators_count": 5, "ras": {"timeouts_count": 0}}`,
		"summary alone":              text[:strings.Index(text, "Communicators...")],
		"no warnings":                text[:strings.Index(text, "\nErrors\n")],
		"nonsense": "NCCL version 99.9.9 compiled with CUDA 99\nJob summary\n===========\n\n  Nodes  " +
			"Processes\n (total)  per node\n -1 99999999999999999999 nan\n",
	} {
		if r, err := Read("x", []byte(data)); err == nil || !strings.Contains(err.Error(), "cut off") {
			t.Errorf("%s: %+v, %v", name, r, err)
		}
	}
	if _, err := Read("x", []byte(text)); err != nil {
		t.Error(err)
	}
}

// TestErrors: an answer that cannot be read says so in words of JSON, at its place, and what to do.
func TestErrors(t *testing.T) {
	const begin = `{"nccl_version": "2.28.9", "communicators_count": 1, "communicators": `
	for text, want := range map[string]string{
		begin + `[{"size": "two"}]}`:            "communicators.size has a JSON string where a whole number belongs",
		begin + `[{"ranks": [{"rank": "0"}]}]}`: "ank has a JSON string where a whole number belongs",
		begin + `[{"hash": "0x1"`:               "the text is cut off",
		begin + `7}`:                            "communicators has a JSON number where a list belongs",
	} {
		_, err := Read("x", []byte(text))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.HasPrefix(err.Error(), "x: JSON, byte ") ||
			!strings.HasSuffix(err.Error(), "; ask again") || strings.Contains(err.Error(), "Go ") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestEndless asks a port where something else streams.
func TestEndless(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			for err == nil {
				_, err = c.Write([]byte(strings.Repeat("A", 1<<16)))
			}
			c.Close()
		}
	}()
	a := Ask(context.Background(), l.Addr().String(), 30*time.Second, NewRoom(1<<20))
	if a.Err == nil || a.Silent > 0 || !strings.Contains(a.Err.Error(), "another service") {
		t.Errorf("%+v", a)
	}
}

// TestEndlessAnswer asks a service that begins a report and never ends it.
func TestEndlessAnswer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, err := c.Write([]byte("SERVER PROTOCOL 2\nOK\nOK\n{\"nccl_version\": \"2.28.9\", \"communicators_count\": 1, " +
					"\"x\": \""))
				for err == nil {
					_, err = c.Write([]byte(strings.Repeat("A", 1<<16)))
				}
			}()
		}
	}()
	room := NewRoom(1 << 20)
	a := Ask(context.Background(), l.Addr().String(), 30*time.Second, room)
	if a.Err == nil || a.Silent > 0 || len(a.Data) > 0 || !strings.Contains(a.Err.Error(), "too long") {
		t.Errorf("%+v", a)
	}
	if left := room.left.Load(); left != 1<<20 {
		t.Errorf("%d bytes of room are left of %d", left, 1<<20)
	}
}
