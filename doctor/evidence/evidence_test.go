package evidence

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"busbar.dev/input/nccllog"
)

// words are made once for all tests: many readers may share them.
var words = sync.OnceValue(NewVocabulary)

func read(t *testing.T, texts ...string) *Set {
	t.Helper()
	r := words().NewReader()
	for i, s := range texts {
		if err := r.Read(string(rune('a'+i)), strings.NewReader(s)); err != nil {
			t.Fatal(err)
		}
	}
	s, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// A line means the same whatever launchers and collectors put around it.
func TestWrappings(t *testing.T) {
	const line = "node7:123:456 [3] NCCL INFO Using network Socket"
	for _, wrap := range []string{
		"%", "3: %", "[1,3]<stdout>:%", "[rank3]:%", "[default3]:%", "\x1b[31m%\x1b[0m", "(Worker pid=7, ip=10.0.0.1) %",
		`{"log":"%\n","stream":"stdout","time":"2024-01-01T00:00:00Z"}`, "2024-01-01T00:00:00.1Z stdout F %", "[pod/train-0/pytorch] %", "Jan 01 00:00:00 host app: %", "%\r",
	} {
		s := read(t, strings.ReplaceAll(wrap, "%", line)+"\n")
		o := s.First(Network, "Socket")
		if o == nil || !o.Hosts["node7"] {
			t.Errorf("%q: %+v", wrap, o)
		}
	}
}

// What a container's runtime wraps line by line reads as the log itself, for what
// was seen and for what NCCL set up.
func TestContainerLog(t *testing.T) {
	text, err := os.ReadFile("../../docs/examples/rings.log")
	if err != nil {
		t.Fatal(err)
	}
	var wrapped strings.Builder
	for l := range strings.Lines(string(text)) {
		fmt.Fprintf(&wrapped, "{\"log\":%q,\"stream\":\"stderr\",\"time\":\"2024-01-01T00:00:00Z\"}\n", l)
	}
	plain, inside := read(t, string(text)), read(t, wrapped.String())
	inside.Bytes, inside.Job, plain.Job = plain.Bytes, nil, nil
	if diff := cmp.Diff(plain, inside, cmp.AllowUnexported(Set{}, nccllog.Rank{}, nccllog.Connection{})); diff != "" {
		t.Error(diff)
	}
	if len(plain.Log.Connections) == 0 || plain.Log.NotUnderstood > 0 {
		t.Errorf("the log has %d connections, %d records were not understood", len(plain.Log.Connections),
			plain.Log.NotUnderstood)
	}
}

func TestEqualOnesAreCountedOnce(t *testing.T) {
	var b strings.Builder
	for i := range 5000 {
		b.WriteString("n" + string(rune('0'+i%10)) + ":1:1 [0] NCCL INFO Using network IB\n")
	}
	s := read(t, b.String())
	list := s.All(Network)
	if len(list) != 1 || list[0].Count != 5000 || len(list[0].Hosts) != 10 || len(list[0].Quotes) != maxQuotes {
		t.Errorf("%d observations, first %+v", len(list), list[0])
	}
}

func TestObservations(t *testing.T) {
	const pre = "h:1:2 [0] NCCL INFO "
	for _, c := range []struct {
		text string
		kind Kind
		args string
	}{
		{pre + "Bootstrap : Using docker0:172.17.0.1<0>", Bootstrap, "docker0 "},
		{"Bootstrap : Using [0]ip6tnl0:fe80::1%ip6tnl0<0> [1]veth0:2a02::1<0>", Bootstrap, "ip6tnl0 fe80:"},
		{
			pre + "NET/Socket : Using [0]eno1:172.18.40.41<0> [1]veth25f2e72:fe80::1%veth<0>", SocketUsing,
			"eno1,veth25f2e72 ",
		},
		{pre + "NET/IB : Using [0]mlx5_0:1/IB [1]mlx5_1:1/RoCE [RO]; OOB eth0:1.1.1.1<0>", IBUsing, "mlx5_0,mlx5_1 IB+RoCE"},
		{
			"NET/IB : Got completion from peer 1.1.1.1<1> with status=12 opcode=0 len=0 vendor err 129 (Recv)", Completion,
			"12",
		},
		{"NET/IB: Got completion from peer 1.1.1.1 with status=IBV_WC_RETRY_EXC_ERR(12) opcode=IBV_WC_SEND(0) " +
			"vendor_err=0x81", Completion, "12"},
		{"Got completion with error 4, opcode 0, len 32694, vendor err 81", Completion, "4"},
		{"Call to ibv_modify_qp failed with 110 Connection timed out", VerbsFailure, "modify_qp timed out"},
		{"ibv_create_cq(cqe=4096) failed: Cannot allocate memory", VerbsFailure, "create_cq cannot allocate memory"},
		{"\tACSCtl: SrcValid+ TransBlk- ReqRedir+ CmpltRedir+", "acs-on", "ReqRedir"},
		{"\tLnkSta:\tSpeed 8GT/s (downgraded), Width x8 (downgraded)", "link-degraded", "8GT/s x8"},
		{"linux ro intel_iommu=on quiet", "iommu-setting", "intel_iommu on"},
		{"     out_of_sequence: 6140236", Counter, "out_of_sequence 1000000"},
		{"LinkDownedCounter:...............5", Counter, "linkdownedcounter 1"},
		{"2: eth2: <BROADCAST,MULTICAST,UP> mtu 1500 qdisc mq state UP", MTU, "eth2 1500"},
		{"nvidia_peermem         16384  0", "peermem", "nvidia_peermem 0"},
		{"max locked memory       (kbytes, -l) 64", "memlock", "64"},
		{"The soft memlock at 64K is that of slurmd", "memlock", "64"},
		{"shm              64M     0   64M   0% /dev/shm", "shm-size", "64M"},
		{"[Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=77, OpType=ALLREDUCE, NumelIn=1, " +
			"Timeout(ms)=600000) ran", Watchdog, "77 ALLREDUCE"},
		{"NVRM: Xid (PCI:0000:17:00): 79, pid=1", "xid", "79"},
		{"● nvidia-fabricmanager.service - NVIDIA fabric manager service; Active: failed", "fabric-manager", "failed"},
		{"        U U D U", "nvlink-down", "several"},
		{"| Warning   | GPU 2GPU 2's NvLink link 5 is currently down  |", "nvlink-down", "GPU 2"},
		{`Feb 02 15:00:00 n1 fm-start.sh[9]: Stopped "Nvidia Fabric Manager"`, "fabric-stopped", ""},
		{"Selected Provider is tcp;ofi_rxm", "ofi-provider", "tcp;ofi_rxm"},
		{
			"h:1:2 [0] include/socket.h:403 NCCL WARN Connect to 10.1.1.1<56821> failed : Connection refused", ConnectError,
			"refused",
		},
		{"h:1:2 [0] NCCL INFO Call to connect returned Connection refused, retrying", ConnectRetry, "refused"},
	} {
		s := read(t, c.text)
		o := s.First(c.kind)
		if o == nil || strings.Join(o.Args, " ") != c.args {
			t.Errorf("%q: %s %+v, want %q; saw %v", c.text, c.kind, o, c.args, kindsOf(s))
		}
	}
}

func TestSettings(t *testing.T) {
	for _, c := range []struct{ text, name, value string }{
		{"export NCCL_IB_DISABLE=1", "NCCL_IB_DISABLE", "1"},
		{"NCCL_ALGO=Ring", "NCCL_ALGO", "Ring"},
		{"mpirun -np 8 -x NCCL_NET_GDR_LEVEL=PHB -x NCCL_DEBUG=INFO ./all_reduce_perf", "NCCL_NET_GDR_LEVEL", "PHB"},
		{`os.environ["NCCL_P2P_DISABLE"] = "1"`, "NCCL_P2P_DISABLE", "1"},
		{`"NCCL_IB_GID_INDEX": "3",`, "NCCL_IB_GID_INDEX", "3"},
		{"        - name: NCCL_SOCKET_IFNAME\n          value: \"eth0\"", "NCCL_SOCKET_IFNAME", "eth0"},
		{"h:1:2 [0] NCCL INFO NCCL_IB_TIMEOUT set by environment to 22.", "NCCL_IB_TIMEOUT", "22"},
		{"#export NCCL_IB_DISABLE=1", "NCCL_IB_DISABLE", ""},
		{"It only works with NCCL_P2P_DISABLE=1 on this box", "NCCL_P2P_DISABLE", ""},
	} {
		got := ""
		if e := read(t, c.text).Env(c.name); e != nil {
			got = e.Value
		}
		if got != c.value {
			t.Errorf("%q: %s=%q, want %q", c.text, c.name, got, c.value)
		}
	}
}

// What a tool or a long log prints is not what somebody tells.
func TestTalk(t *testing.T) {
	if s := read(t, "It hangs with 2 nodes"); !s.Told || s.Words == "" {
		t.Error("a sentence was not taken")
	}
	for _, text := range []string{
		"INFO: slow path hangs", "2024-01-01 00:00:00 worker hangs on start", "[rank0]: it hangs here", "# it hangs",
		strings.Repeat("training step done\n", 400) + "it hangs with two nodes\n",
	} {
		if s := read(t, text); s.Told {
			t.Errorf("%.40q was taken for talk", text)
		}
	}
}

func TestArchive(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	w := tar.NewWriter(z)
	for name, text := range map[string]string{
		"logs/a.log": "h:1:2 [0] NCCL INFO Using network IB\n", "bin/x": "\x00\x01", "env.txt": "NCCL_ALGO=Tree\n",
	} {
		if err := w.WriteHeader(&tar.Header{
			Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg, Format: tar.FormatUSTAR,
		}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	s := read(t, b.String())
	if s.First(Network, "IB") == nil || s.Env("NCCL_ALGO") == nil || s.First(Network).Quotes[0].File != "a/logs/a.log" {
		t.Errorf("sources %v, kinds %v", s.Sources, kindsOf(s))
	}
}

func FuzzReader(f *testing.F) {
	f.Add("h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[0] [send] via NET/IB/0/GDRDMA\n[rank0]: x\n- name: NCCL_X\n  " +
		"value: 1")
	f.Add("hello there\n#")
	f.Add("6 GB/s instead of 12\n644,699 49.36")
	f.Add("\x1f\x8b\x08\x00")
	f.Add("Connect to [::ffff:1.2.3.4]:9 failed\nhealthMask 0xffffffff\nwaitForInput: socket x timed out after 1ms")
	words := NewVocabulary()
	f.Fuzz(func(t *testing.T, text string) {
		r := words.NewReader()
		if err := r.Read("x", strings.NewReader(text)); err != nil {
			return
		}
		s, err := r.Set()
		if err != nil {
			t.Fatal(err)
		}
		for _, k := range kindsOf(s) {
			for _, o := range s.All(k) {
				if len(o.Quotes) == 0 || len(o.Quotes) > maxQuotes {
					t.Errorf("%s has %d quotes", k, len(o.Quotes))
				}
				for _, q := range o.Quotes {
					if len(q.Text) > maxQuote+8 {
						t.Errorf("%s quotes %d bytes", k, len(q.Text))
					}
				}
			}
		}
	})
}

// A packed log that breaks off says so, and what to do.
func TestPackedBreaksOff(t *testing.T) {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	for i := range 5000 {
		fmt.Fprintf(z, "step %d took %d ms\n", i, i*7919%1000)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	err := NewReader().Read("job.log.gz", bytes.NewReader(b.Bytes()[:b.Len()/2]))
	if err == nil || !strings.Contains(err.Error(), "breaks off after line") {
		t.Errorf("%v", err)
	}
}

// Data that is compressed or random is refused, not read as a text without faults.
func TestRandomBytes(t *testing.T) {
	data := make([]byte, 1<<15)
	x := uint32(7)
	for i := range data {
		x = x*1664525 + 1013904223
		data[i] = byte(x >> 24)
	}
	if err := words().NewReader().Read("core", bytes.NewReader(data)); err == nil ||
		!strings.Contains(err.Error(), "binary data") {
		t.Errorf("random bytes: %v", err)
	}
}

// kindsOf lists what was seen.
func kindsOf(s *Set) []Kind { return slices.Sorted(maps.Keys(s.kinds)) }
