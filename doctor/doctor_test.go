package doctor

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// examine reads texts, one a source, and applies all rules.
func examine(t *testing.T, texts ...string) *Report {
	t.Helper()
	return Examine(read(t, texts...))
}

// vocabulary is shared: to make one takes longer than to read what most tests have.
var vocabulary = sync.OnceValue(evidence.NewVocabulary)

func read(t *testing.T, texts ...string) *evidence.Set {
	t.Helper()
	r := vocabulary().NewReader()
	for i, s := range texts {
		if err := r.Read(string(rune('a'+i))+".log", strings.NewReader(s)); err != nil {
			t.Fatal(err)
		}
	}
	set, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func ids(r *Report) []string {
	var list []string
	for _, f := range r.Findings {
		list = append(list, f.ID)
	}
	return list
}

// The first finding names the cause, whatever else is said.
func TestFirstFinding(t *testing.T) {
	const pre = "n1:12:34 [0] NCCL INFO "
	const warn = "n1:12:34 [0] transport/net.cc:9 NCCL WARN "
	for _, c := range []struct {
		name, text, want string
		severity         finding.Severity
	}{
		{
			"shm", warn + "Error: failed to extend /dev/shm/nccl-x to 9637892 bytes, error: No space left on device (28)",
			"shm-too-small", finding.Error,
		},
		{
			"duplicate", warn + "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 2000", "duplicate-gpu",
			finding.Error,
		},
		{"docker0", pre + "Bootstrap : Using docker0:172.17.0.1<0>\n" + warn +
			"socketStartConnect: Connect to 172.17.0.2<4000> failed : Connection timed out", "wrong-interface", finding.Error},
		{"acs and protection error", warn + "NET/IB : Got completion from peer 10.0.0.1<1> with error 4, opcode 1, len 3, " +
			"vendor err 81\n\tACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+", "acs", finding.Error},
		{"gid", pre + "NET/IB : Using [0]mlx5_0:1/RoCE [RO]; OOB eth0:10.0.0.1<0>\n" + warn +
			"Call to ibv_modify_qp failed with error Connection timed out", "gid-index", finding.Error},
		{"memlock", warn + "Call to ibv_reg_mr failed with error Cannot allocate memory\nmax locked memory       (kbytes, " +
			"-l) 64", "memlock", finding.Error},
		{"fabric manager", "Test CUDA failure common.cu:1030 'system not yet initialized'", "fabric-manager", finding.Error},
		{"provider", pre + "NET/OFI Selected Provider is tcp;ofi_rxm", "libfabric", finding.Error},
		{"ib off", pre + "NCCL_IB_DISABLE set by environment to 1.\n" + pre + "Using network Socket\nn2:12:34 [0] NCCL " +
			"INFO Using network Socket\nNCCL_IB_HCA=mlx5\n2 nodes with InfiniBand are slow", "ib-disabled", finding.Warn},
		{
			"graph", pre + "Pattern 4, crossNic 0, nChannels 1, bw 0.100000/0.100000, type SYS/SYS, sameChannels 1",
			"graph-search", finding.Error,
		},
		{
			"job cancelled", "10it [00:09, 1.1it/s]slurmstepd: error: *** JOB 77 ON n3 CANCELLED AT 2031-01-02T03:04:05 ***",
			"restart-loop", finding.Warn,
		},
		{
			"killed by the shell's word", "/var/spool/x/slurm_script: line 9: 4711 Killed                  server --port 1",
			"rank-killed", finding.Error,
		},
		{
			"timeouts of Slingshot", strings.Repeat("0: 8 2 float sum -1 1.1 0.0 0.0 0\n", 201) +
				"   0: MPICH Slingshot Network Summary: 3 network timeouts", "bad-link", finding.Warn,
		},
		{
			"NIC far from the GPU; an optional search found nothing", pre + "NET/IB : GPU Direct RDMA Enabled for HCA 0 " +
				"'mlx5_1'\n" + pre + "GPU Direct RDMA Disabled for GPU 41000 / HCA 0 (distance 6 > 4)\n" + pre + "Pattern 3, " +
				"crossNic 0, nChannels 0, bw 0.000000/0.000000, type LOC/PIX, sameChannels 1\n" + pre + "Channel 00/0 : " +
				"0[41000] -> 1[41000] [receive] via NET/IB/0", "gdr-off", finding.Warn,
		},
		{
			"oom", "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n[rank1]:[E] [Rank 1] " +
				"Watchdog caught collective operation timeout: WorkNCCL(SeqNum=12, OpType=ALLREDUCE, NumelIn=1)", "out-of-memory",
			finding.Error,
		},
		{"xid", "[ 12.3] NVRM: Xid (PCI:0000:17:00): 79, pid=1, GPU has fallen off the bus.\nn1:12:34 [0] misc/x.cc:1 NCCL " +
			"WARN Cuda failure 'unspecified launch failure'", "gpu-fault", finding.Error},
		{"dmabuf", warn + "Call to ibv_reg_dmabuf_mr failed with error Operation not supported", "dmabuf", finding.Error},
		{"mtu", "poll: IBV_WC_LOC_LEN_ERR", "mtu-mismatch", finding.Error},
		{"port", warn + "NET/IB : mlx5_3:1 Got async event : port error", "bad-link", finding.Error},
		{
			"steps", "rank 0 step time 1.00 s\nrank 1 step time 1.01 s\nrank 2 step time 1.52 s\nrank 3 step time 1.00 s",
			"straggler", finding.Warn,
		},
	} {
		r := examine(t, c.text)
		if len(r.Findings) == 0 || r.Findings[0].ID != c.want || r.Findings[0].Severity != c.severity {
			t.Errorf("%s: %v, want %s first as %s", c.name, ids(r), c.want, c.severity)
			continue
		}
		if len(r.Findings[0].Evidence) == 0 {
			t.Errorf("%s: no line quoted", c.name)
		}
	}
}

// A hang names the ranks that did not come.
func TestWhoIsMissing(t *testing.T) {
	line := func(rank, seq string) string {
		return "[rank" + rank + "]:[E] [Rank " + rank + "] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=" +
			seq + ", OpType=ALLREDUCE, NumelIn=1, Timeout(ms)=600000) ran for 600001 milliseconds\n"
	}
	r := examine(t, "WORLD_SIZE=4\n"+line("0", "77")+line("1", "77")+line("3", "76"))
	i := slices.Index(ids(r), "collective-timeout")
	if i < 1 || r.Findings[i].Where != "ranks without the message: 2" ||
		!strings.Contains(r.Findings[i].Cause, "76 to 77") {
		t.Errorf("%+v", r.Findings)
	}
}

// The legend below every matrix of nvidia-smi is no evidence.
func TestLegendIsNoEvidence(t *testing.T) {
	r := examine(t, "training is slow\n\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV4\t0-31\nGPU1\tNV4\t X \t0-31\n\n"+
		"Legend:\n\n  X    = Self\n"+
		"  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)\n  NODE = "+
		"Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node\n")
	for _, f := range r.Findings {
		if f.ID == "numa" {
			t.Errorf("%+v", f)
		}
	}
}

// What NCCL said last is in the finding about its error.
func TestLastError(t *testing.T) {
	r := examine(t, "2: ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\n2: Last error:\n2: "+
		"NET/IB : Requested properties for vNic 8, only 8 vNics have been created\n")
	if !slices.ContainsFunc(r.Findings,
		func(f finding.Finding) bool { return strings.Contains(f.Cause, "Requested properties") }) {
		t.Errorf("%+v", r.Findings)
	}
}

// Consequences follow their root.
func TestRootFirst(t *testing.T) {
	r := examine(t, strings.Join([]string{
		"n1:1:1 [0] include/shm.h:28 NCCL WARN Call to posix_fallocate failed : No space left on device",
		"n1:1:1 [0] NCCL INFO init.cc:82 -> 2",
		"torch.distributed.DistBackendError: NCCL error, ncclSystemError: System call failed",
	}, "\n"))
	got := ids(r)
	if len(got) < 2 || got[0] != "shm-too-small" {
		t.Fatalf("%v", got)
	}
	for _, f := range r.Findings[1:] {
		if f.Severity != finding.Note && f.ExplainedBy != "shm-too-small" {
			t.Errorf("%s is explained by %q", f.ID, f.ExplainedBy)
		}
	}
}

// Evidence of several files makes one finding.
func TestSeveralFiles(t *testing.T) {
	r := examine(t,
		"n1:1:1 [0] net_ib.cc:9 NCCL WARN NET/IB : Got completion with error 4, opcode 0, len 3, vendor err 81",
		"3a:00.0 PCI bridge\n\t\tACSCtl:\tSrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ EgressCtrl- DirectTrans-")
	if len(r.Findings) == 0 || r.Findings[0].ID != "acs" {
		t.Fatalf("%v", ids(r))
	}
	files := map[string]bool{}
	for _, q := range r.Findings[0].Evidence {
		files[q.File] = true
	}
	if len(files) != 2 {
		t.Errorf("quotes lines of %v, want both files", files)
	}
}

// Texts in which nothing is wrong.
func TestHealthy(t *testing.T) {
	healthy(t,
		"", "hello\n",
		"n1:1:1 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>\nn1:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB [RO]; "+
			"OOB eth0:10.0.0.1<0>\nn1:1:1 [0] NCCL INFO Using network IB\nn1:1:1 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] "+
			"[send] via NET/IB/0/GDRDMA",
		"n1:1:1 [0] NCCL INFO Call to connect returned Connection refused, retrying\nn1:1:1 [0] NCCL INFO comm 0x1 rank 0 "+
			"nranks 2 cudaDev 0 busId 1000 - Init COMPLETE",
		"max locked memory       (kbytes, -l) unlimited",
		"\t\tACSCtl:\tSrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd-",
		"SymbolErrorCounter:..............0\nLinkDownedCounter:...............0",
	)
}

func healthy(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if r := examine(t, text); finding.Serious(r.Findings) {
			t.Errorf("%q: %v", text, ids(r))
		}
	}
}

// Every rule has a name of its own and is described; what it explains is there.
func TestRulesAreWhole(t *testing.T) {
	m, err := NewModel()
	if err != nil {
		t.Fatal(err)
	}
	rules := m.Detected
	var names []string
	for _, r := range rules {
		if r.See == "" {
			t.Errorf("%s has no reference", r.ID)
		}
		if slices.Contains(names, r.ID) {
			t.Errorf("%s is there twice", r.ID)
		}
		names = append(names, r.ID)
	}
	for _, r := range rules {
		for _, e := range r.Follows {
			if !slices.Contains(names, e) {
				t.Errorf("%s explains %s, which is no rule", r.ID, e)
			}
		}
	}
}

func FuzzExamine(f *testing.F) {
	f.Add("n1:1:1 [0] NCCL INFO Bootstrap : Using docker0:172.17.0.1<0>\nhangs with 2 nodes, 6 GB/s instead of 12")
	f.Add("644,699 49.36\n632,641 88.36\n284,678 49.28")
	f.Add("NCCL_ALGO=Ring\nCUDA error: out of memory\n{\"log\":\"x\\n\"}")
	words := vocabulary()
	f.Fuzz(func(t *testing.T, text string) {
		r := words.NewReader()
		if err := r.Read("x", strings.NewReader(text)); err != nil {
			return
		}
		set, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		rep := Examine(set)
		rep.Mask(true)
		var b strings.Builder
		for _, w := range []func() error{
			func() error { return Text{}.Write(&b, rep) },
			func() error { return indented(&b, rep) },
			func() error { return Markdown(&b, rep) },
		} {
			if err := w(); err != nil {
				t.Fatal(err)
			}
		}
		if b.Len() > 1<<20 {
			t.Errorf("%d bytes of report for %d of text", b.Len(), len(text))
		}
	})
}

// model weighs the built-in causes.
var model = sync.OnceValues(func() (*cause.Model, error) { return NewModel() })

// Examine weighs the built-in causes.
func Examine(s *evidence.Set) *Report {
	m, err := model()
	if err != nil {
		panic(err) // data of the program; a test has read it
	}
	return Weigh(m, s)
}
