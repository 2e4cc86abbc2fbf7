package evidence

import (
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"busbar.dev/input/nccllog"
)

func TestBlind(t *testing.T) {
	for pattern, want := range map[string]bool{
		`(?i)rank (\d+)\b`: true, `[0-9a-f]{2,4}:\S+`: true, `[^\d\s]+`: true, `a|b`: true, ``: true,
		`signal 9`: false, `[1-9]\d*`: false, `code (?:137|x)`: false, `[\da]b[3-5]?`: false,
	} {
		if got := blind(pattern); got != want {
			t.Errorf("blind(%q) = %v", pattern, got)
		}
	}
}

// shapely are lines that differ by more than their digits; what some of them say depends on these.
const shapely = `srun: error: node17: task 136: Exited with exit code 137
[rank3]: exitcode  : -9 (pid: 12)
Signal 9 (SIGKILL) received by PID 7, Signal 7 by PID 9
n1:11:12 [3] NCCL INFO Connected all rings, use ring PXN 0 GDR 1
n1:11:12 [3] NCCL INFO Channel 00/01 :    0
n1:11:12 [3] NCCL INFO Channel 02/32 :    0   1   2   3
n1:11:12 [3] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.
n1:11:12 [3] transport/net_ib.cc:1296 NCCL WARN NET/IB : Got completion from peer 10.0.0.9<1> with status=12 opcode=0 len=0 vendor err 129 (Recv)
n1:11:12 [3] NCCL INFO init.cc:82 -> 3
[1234.5] NVRM: Xid (PCI:0000:3b:00): 79, pid=4711, name=python, GPU has fallen off the bus.
export NCCL_IB_HCA=mlx5_0,mlx5_1 OMP_NUM_THREADS=8
   value: "4096"
     rx_prio3_pause: 98765 rx_discards_phy: 0
2: eth0: <BROADCAST,UP> mtu 9000 qdisc mq state UP
    inet 10.1.2.3/16 brd 10.1.255.255 scope global eth0
0.0.0.0         10.0.0.1        0.0.0.0         UG    0      0        0 eth0
mpirun -np 16 -H a:8,b:8 ./all_reduce_perf -b 8 -e 8G
#  Rank  3 Group  0 Pid  4711 on node17 device  3 [0x3b] NVIDIA H100 80GB HBM3
rank 3: step time 1.24 s loss 2.34
[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4711, OpType=ALLREDUCE, NumelIn=1, NumelOut=1, Timeout(ms)=600000) ran for 600053 milliseconds before timing out.
CUDA 802: system not yet initialized; kernel.numa_balancing = 1; acs_ctrl: 0x001d
max locked memory (kbytes, -l) 65536; --shm-size=64m; BAR1 full
torch.distributed.DistNetworkError: The client socket has timed out after 600000ms while trying to connect to (10.1.2.3, 29500).`

// What a looker remembers of a shape changes nothing of what it recognises in the next text.
func TestShapes(t *testing.T) {
	v := NewVocabulary()
	used, fresh := v.newLooker(), v.newLooker()
	rnd := rand.New(rand.NewPCG(3, 4))
	hits := 0
	for range 300 {
		for text := range strings.SplitSeq(shapely, "\n") {
			hits += compareLooks(t, used, fresh, changeDigits(rnd, text))
		}
	}
	if hits < 5000 {
		t.Errorf("%d things recognised; the lines should show more", hits)
	}
}

// compareLooks shows a line to a looker that has seen others and to one that remembers nothing.
func compareLooks(t *testing.T, used, fresh *looker, text string) int {
	t.Helper()
	l := new(nccllog.Parser).ParseLine(text, nccllog.Pos{Source: "x", Line: 1000})
	fresh = fresh.words.newLooker()
	got, _ := used.look(&l, false)
	want, _ := fresh.look(&l, false)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%q:\n got %+v\nwant %+v", text, got, want)
	}
	return len(want)
}

func changeDigits(rnd *rand.Rand, text string) string {
	b := []byte(text)
	for i, c := range b {
		if c >= '0' && c <= '9' && rnd.IntN(3) == 0 {
			b[i] = '0' + byte(rnd.IntN(10))
		}
	}
	return string(b)
}

func FuzzShapes(f *testing.F) {
	for text := range strings.SplitSeq(shapely, "\n") {
		f.Add(text, uint64(1))
	}
	v := NewVocabulary()
	fresh := v.newLooker()
	f.Fuzz(func(t *testing.T, text string, seed uint64) {
		used := v.newLooker()
		rnd := rand.New(rand.NewPCG(seed, 1))
		compareLooks(t, used, fresh, text)
		for range 4 {
			compareLooks(t, used, fresh, changeDigits(rnd, text))
		}
	})
}
