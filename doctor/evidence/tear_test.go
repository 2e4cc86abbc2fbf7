package evidence

import (
	"bytes"
	"io"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"busbar.dev/internal/lines"
)

// A log whose lines were torn and written into one another names no host that is not there, and what was seen on
// one is not filed under another's name.
func TestInterleavedLines(t *testing.T) {
	j := job(t)
	real := map[string]bool{}
	for n := range j.Nodes {
		real[j.Host(n)] = true
	}
	warning := j.Warn(3, "transport/net_ib.cc:1290", "ncclIbTest", "NET/IB : Got completion from peer 10.77.0.2<4097> "+
		"with status=12 opcode=129 len=0 vendor err 129 (Recv)")
	whole := strings.SplitAfter(strings.Repeat("training as usual, loss 1.25\n", 2*maxTalk)+j.Logs()+warning, "\n")
	rnd := rand.New(rand.NewPCG(3, 4))
	for round := range 8 {
		s := read(t, tear(rnd, whole, 1+round))
		for _, h := range s.Log.Hosts {
			if !real[h] {
				t.Errorf("round %d: host %q", round, h)
			}
		}
		for _, k := range kindsOf(s) {
			for _, o := range s.All(k) {
				for _, h := range o.HostNames() {
					if !real[h] {
						t.Errorf("round %d: %s seen on %q: %v", round, k, h, o.Quotes)
					}
				}
			}
		}
	}
}

// tear cuts lines in a hundred at any byte and writes the line after them, or a piece of a training log, in between.
func tear(rnd *rand.Rand, whole []string, percent int) string {
	var b strings.Builder
	for i := 0; i < len(whole); i++ {
		line := whole[i]
		if len(line) < 2 || rnd.IntN(100) >= percent {
			b.WriteString(line)
			continue
		}
		cut := 1 + rnd.IntN(len(line)-1)
		b.WriteString(line[:cut])
		switch between := whole[min(i+1, len(whole)-1)]; rnd.IntN(4) {
		case 0: // another rank's whole line
			b.WriteString(between + line[cut:])
			i++
		case 1: // another rank's line, whose newline comes later
			b.WriteString(strings.TrimSuffix(between, "\n") + line[cut:] + "\n")
			i++
		case 2:
			b.WriteString("step 12 loss 1.5")
			b.WriteString(line[cut:])
		case 3:
			b.WriteString("\n" + line[cut:])
		}
	}
	return b.String()
}

// The same is read wherever a text is cut into pieces and however many look at them.
func TestChunks(t *testing.T) {
	j := job(t)
	rnd := rand.New(rand.NewPCG(5, 6))
	var b bytes.Buffer
	if _, err := io.Copy(&b, &jobLog{ranks: 64, channels: 4, limit: 200_000}); err != nil {
		t.Fatal(err)
	}
	text := j.Environment() + j.Logs() + b.String() +
		"{\"NCCL_IB_HCA\": \"mlx5\", \"log\": [\"Xid 79\", \"socket timeout\"]}\n" +
		tear(rnd, strings.SplitAfter(j.Logs()+b.String(), "\n"), 5) + strings.Repeat("tqdm 12%|#  |\r", 6000) +
		j.Watchdog(2, 71, "ALLREDUCE") + j.Steps(3, 40, 1.5)
	load := func(in io.Reader, size, workers int) *Set {
		r := NewReader()
		r.chunk, r.workers = size, workers
		if err := r.Read("x.log", in); err != nil {
			t.Fatal(err)
		}
		s, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	want := load(strings.NewReader(text), lines.MaxPiece, 1)
	for round := range 6 {
		in := io.Reader(strings.NewReader(text))
		if round%2 == 1 {
			in = iotest.HalfReader(in)
		}
		if got := load(in, lines.MaxPiece*(1+rnd.IntN(4)), 1+rnd.IntN(5)); !reflect.DeepEqual(got, want) {
			t.Fatalf("round %d differs", round)
		}
	}
}
