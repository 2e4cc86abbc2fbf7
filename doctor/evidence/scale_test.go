package evidence

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"testing"
)

// jobLog writes the log of a job of many ranks, line by line as it is read: set-up,
// connections over several channels, calls, one warning.
type jobLog struct {
	ranks, channels int
	limit           int64 // bytes after which it ends
	rank, part      int
	buf             bytes.Buffer
	given           int64
}

func (j *jobLog) Read(p []byte) (int, error) {
	for j.buf.Len() < len(p) && j.given < j.limit {
		before := j.buf.Len()
		j.write()
		j.given += int64(j.buf.Len() - before)
	}
	if j.buf.Len() == 0 {
		return 0, io.EOF
	}
	return j.buf.Read(p)
}

// write adds what one rank prints at one time; ranks take turns, as in a log that
// a launcher collects.
func (j *jobLog) write() {
	r, d := j.rank, j.rank%8
	pre := fmt.Sprintf("%d: node%04d:%d:%d [%d] NCCL INFO ", r, r/8, 10000+r, 10050+r, d)
	put := func(format string, args ...any) {
		j.buf.WriteString(pre)
		fmt.Fprintf(&j.buf, format, args...)
		j.buf.WriteByte('\n')
	}
	switch {
	case j.part == 0:
		put("Bootstrap: Using eth0:10.%d.%d.%d<0>", r>>16, r>>8&255, r&255)
		put("NCCL_IB_HCA set by environment to mlx5")
		put("NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/IB [2]mlx5_2:1/IB [3]mlx5_3:1/IB [RO]; OOB eth0:10.0.0.1<0>")
		put("Using network IB")
		put("ncclCommInitRank comm 0x7f%08x rank %d nranks %d cudaDev %d nvmlDev %d busId %db000 commId 0xabc - Init START",
			r, r, j.ranks, d, d, d+1)
		put("comm 0x7f%08x rank %d nRanks %d nNodes %d localRanks 8 localRank %d MNNVL 0", r, r, j.ranks, j.ranks/8, d)
	case j.part%8 == 1:
		for c := range j.channels {
			if d == 7 {
				put("Channel %02d/0 : %d[%d] -> %d[0] [send] via NET/IB/%d/GDRDMA", c, r, d, (r+1)%j.ranks, c%8)
			} else {
				put("Channel %02d/0 : %d[%d] -> %d[%d] via P2P/CUMEM/read", c, r, d, (r+1)%j.ranks, d+1)
			}
		}
		put("Connected all rings, use ring PXN 0 GDR 1")
		put("ncclCommInitRank comm 0x7f%08x rank %d nranks %d cudaDev %d nvmlDev %d busId %db000 commId 0xabc - Init "+
			"COMPLETE", r, r, j.ranks, d, d, d+1)
	default:
		for i := range 8 {
			put("AllReduce: opCount %x sendbuff 0x7f12%08x recvbuff 0x7f12%08x count %d datatype 9 op 0 root 0 comm 0x7f%08x "+
				"[nranks=%d] stream 0x55%08x", 8*j.part+i, r, r, 1<<20+i, r, j.ranks, r)
		}
		fmt.Fprintf(&j.buf, "%d: [2026-01-01 00:00:00] iteration %d/ 500000 | consumed samples: 1024 | elapsed time per "+
			"iteration (ms): 1234.5 | loss: 2.345E+00\n", r, j.part)
	}
	if j.rank++; j.rank == j.ranks {
		j.rank, j.part = 0, j.part+1
		fmt.Fprintf(&j.buf, "17: node0002:10017:10067 [1] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from "+
			"peer 10.0.0.9<1> with status=12 opcode=0 len=0 vendor err 129 (Recv)\n")
	}
}

// A log of 4,096 ranks fits into little memory. BUSBAR_SCALE=2000 makes it 2 GB and
// prints the peak of the heap; the default is small enough for every run.
func TestManyRanks(t *testing.T) {
	mb := 8
	if n, err := strconv.Atoi(os.Getenv("BUSBAR_SCALE")); err == nil {
		mb = n
	}
	r := NewReader()
	if err := r.Read("job.log", &jobLog{ranks: 4096, channels: 16, limit: int64(mb) * 1e6}); err != nil {
		t.Fatal(err)
	}
	s, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	t.Logf("%d MB, %d lines, %d MiB from the system", s.Bytes/1e6, s.Lines, m.Sys>>20)
	if o := s.First(Completion); s.Lines > 4096*7 && o == nil {
		t.Error("the warning was not seen")
	}
	if m.Sys > 1<<30 {
		t.Errorf("%d MiB for a log of %d MB", m.Sys>>20, mb)
	}
}

func BenchmarkRead(b *testing.B) {
	b.SetBytes(20e6)
	for b.Loop() {
		r := NewReader()
		if err := r.Read("job.log", &jobLog{ranks: 4096, channels: 16, limit: 20e6}); err != nil {
			b.Fatal(err)
		}
	}
}
