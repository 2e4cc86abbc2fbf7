package evidence

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"busbar.dev/cluster"
	"busbar.dev/coll"
	"busbar.dev/internal/test/synth"
	"busbar.dev/sim"
)

// job is a synthetic job of 2x8 GPUs.
func job(t *testing.T) *synth.Job {
	t.Helper()
	m := synth.Machines()[0]
	j, err := synth.NewJob(&m, 28, map[string]string{"NCCL_IB_QPS_PER_CONNECTION": "4"})
	if err != nil {
		t.Fatal(err)
	}
	return j
}

// What a job prints becomes counted observations with the hosts and ranks that printed them, its log, and its steps.
func TestSyntheticJob(t *testing.T) {
	j := job(t)
	text := j.Environment()
	for r := range j.Ranks() {
		text += j.Steps(r, 5, 1+float64(r)/10)
	}
	for r := range j.Ranks() - 1 {
		text += j.Watchdog(r, 70+r%2, "ALLREDUCE") + j.Queued(r, 1+r%2)
	}
	s := read(t, j.Logs(), text)
	if len(s.Log.Comms) != 1 || s.Log.NotUnderstood != 0 || s.Unknown != 0 || s.Told || len(s.Sources) != 2 {
		t.Errorf("%d communicators, %d lines not understood: %v", len(s.Log.Comms), s.Unknown, s.Samples)
	}
	across := strings.Count(j.Logs(), " via NET/")
	within := strings.Count(j.Logs(), " via ") - across
	if o := s.First(OverNet, "IB"); o == nil || o.Count != across || o.Arg(1) != "GDRDMA" ||
		!slices.Equal(o.HostNames(), []string{j.Host(0), j.Host(1)}) || s.Count("over-p2p") != within {
		t.Errorf("%+v; %d connections between hosts, %d within", o, across, within)
	}
	if o := s.Find(GDROn, func(o *Observation) bool { return o.Arg(0) == "mlx5_7" }); o == nil || o.Count != j.Ranks() ||
		o.Arg(9) != "" {
		t.Errorf("%+v", o)
	}
	if v := s.Values("NCCL_IB_QPS_PER_CONNECTION"); len(v) != 1 || v[0].Value != "4" || v[0].Count != j.Ranks() ||
		len(v[0].Hosts) != 2 || s.Env("WORLD_SIZE").Value != "16" {
		t.Errorf("settings %v", s.EnvNames())
	}
	// that somebody waited at all
	waits := slices.DeleteFunc(slices.Clone(s.All(Watchdog)), func(o *Observation) bool { return len(o.Args) == 0 })
	if len(waits) != 2 || waits[0].Arg(0) != "70" || len(waits[0].Ranks) != 8 || len(waits[1].Ranks) != 7 ||
		waits[1].Ranks[15] || len(s.All("queued")) != 2 {
		t.Errorf("%+v", waits)
	}
	for r := range j.Ranks() {
		if got := s.Steps[r]; got == nil || got.N != 5 || math.Abs(got.Mean()-1-float64(r)/10) > 0.02 {
			t.Errorf("rank %d: %+v", r, got)
		}
	}
}

// Files say the same in any order, packed, and in an archive of packed ones.
func TestSyntheticPacked(t *testing.T) {
	j := job(t)
	files := map[string]string{
		"nccl.log": j.Log(0) + j.Log(8), "job.log": j.Steps(0, 5, 1) + j.Watchdog(0, 7, "ALLGATHER"),
		"dmesg.log": j.KernelXid(9, 79, "GPU has fallen off the bus."),
	}
	summary := func(s *Set) string {
		var b strings.Builder
		for _, k := range kindsOf(s) {
			for _, o := range s.All(k) {
				fmt.Fprintln(&b, k, o.Args, o.Count, o.HostNames(), len(o.Ranks), len(o.Quotes))
			}
		}
		return fmt.Sprint(b.String(), len(s.Log.Connections), s.Log.Records, len(s.Steps))
	}
	want := summary(read(t, files["nccl.log"], files["job.log"], files["dmesg.log"]))
	if got := summary(read(t, files["dmesg.log"], files["job.log"], files["nccl.log"])); got != want {
		t.Errorf("in another order:\n%s\nwant\n%s", got, want)
	}
	pack := func(text string) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write([]byte(text))
		z.Close()
		return b.Bytes()
	}
	var archive bytes.Buffer
	a := tar.NewWriter(&archive)
	add := func(name string, data []byte) {
		a.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), Typeflag: tar.TypeReg})
		a.Write(data)
	}
	for _, name := range []string{"nccl.log", "job.log", "dmesg.log"} {
		add("bundle/"+name+".gz", pack(files[name]))
	}
	add("bundle/empty.log", nil)
	add("bundle/core", append(bytes.Repeat([]byte{0}, 4000), 'x'))
	a.WriteHeader(&tar.Header{Name: "bundle/", Typeflag: tar.TypeDir})
	a.Close()
	r := words().NewReader()
	if err := r.Read("bundle.tar.gz", bytes.NewReader(pack(archive.String()))); err != nil {
		t.Fatal(err)
	}
	s, err := r.Set()
	if err != nil {
		t.Fatal(err)
	}
	if got := summary(s); got != want {
		t.Errorf("in an archive:\n%s\nwant\n%s", got, want)
	}
	if !slices.ContainsFunc(s.Sources,
		func(n string) bool { return strings.HasSuffix(n, "bundle.tar.gz/bundle/nccl.log") }) {
		t.Errorf("sources %v", s.Sources)
	}
	for name, data := range map[string][]byte{
		"a zip archive": []byte("PK\x03\x04xxxx"), "not": []byte("\x1f\x8bxx"),
		"binary data": append([]byte{1, 0, 2, 0}, bytes.Repeat([]byte{0, 1}, 500)...),
	} {
		if err := words().NewReader().Read("f", bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := words().NewReader().Set(); err == nil {
		t.Error("nothing is something")
	}
}

// A table of nccl-tests in a job's output is kept as one, and its GPUs are the cluster's.
func TestSyntheticTable(t *testing.T) {
	m := synth.Machines()[0]
	list, err := m.Sweeps(sim.Fitted(), 0, synth.Sizes(6, 16), coll.AllReduce)
	if err != nil {
		t.Fatal(err)
	}
	text, err := m.Table(&list[0])
	if err != nil {
		t.Fatal(err)
	}
	s := read(t, text)
	if len(s.Tables) != 1 || s.Tables[0].Op != coll.AllReduce || len(s.Tables[0].Sweeps[0].Points) != 6 ||
		s.Tables[0].File != "a" || s.Count(Average) != 1 {
		t.Fatalf("%+v", s.Tables)
	}
	// In the middle of a log it is found too, of which little else is kept.
	r := words().NewReader()
	log := strings.Repeat("12:00:00 the program goes on and on\n", 1<<14)
	if err := r.Read("log", strings.NewReader(log+text+log)); err != nil || len(r.set.Tables) != 1 ||
		r.kept.Len() > len(log) {
		t.Errorf("%v, %d tables, %d bytes kept", err, len(r.set.Tables), r.kept.Len())
	}
	r = words().NewReader()
	c, _, err := m.Cluster()
	if err != nil {
		t.Fatal(err)
	}
	f := &cluster.Fragment{Format: "synthetic", Source: "x"}
	f.Hosts, f.Types = c.Hosts, c.Types
	r.Fragment(f)
	if s, err = r.Set(); err != nil || s.Cluster == nil || len(s.Cluster.Hosts) != m.Nodes {
		t.Errorf("%v: %+v", err, s)
	}
}

// Each line with what it tells, and lines beside it that look alike and tell nothing of the kind.
func TestLinesAndTheirTwins(t *testing.T) {
	const warn = "h:1:2 [0] x.cc:1 NCCL WARN "
	for _, c := range []struct {
		text string
		kind Kind
		args string // "-": nothing of the kind
	}{
		{"RuntimeError: unhandled system error", TorchError, "ncclSystemError"},
		{"RuntimeError: unhandled cuda error", TorchError, "ncclUnhandledCudaError"},
		{"unhandled nccl error of a bucket", TorchError, "unhandled"},
		{"I0101 async NCCL error: remote process exited", TorchError, "ncclRemoteError"},
		{"[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB", OutOfMemory, ""},
		{"[rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate more than 1EB memory.", OutOfMemory, "-"},
		{"Fatal Python error: Segmentation fault", "crash", "segv"},
		{"exitcode: -11 (pid: 4)", "crash", "segv"},
		{"[launch.py:319:sigkill_handler] ['python', 'train.py'] exits with return code = -9", "killed", ""},
		{"Aborted (core dumped)", "crash", "-"},
		{"active_mtu: 1024 (3)", "active-mtu", "1024"},
		{"active_mtu: 4096 (5), max_mtu: 4096", "active-mtu", "4096"},
		{"active_mtu: none", "active-mtu", "-"},
		{"UCX: Remote access error on mlx5_0:1", Verdict, "REM_ACCESS_ERR"},
		{"UCX: transport retry counter exceeded on mlx5_0:1", Verdict, "RETRY_EXC_ERR"},
		{"RNR retry count exceeded", Verdict, "RNR_RETRY_EXC_ERR"},
		{"wc status IBV_WC_REM_OP_ERR", Verdict, "REM_OP_ERR"},
		{warn + "Bootstrap : no socket interface found", "no-interface", ""},
		{warn + "no interface found in the same subnet; no socket interface found", "no-interface", "-"},
		{warn + "NET/IB : collective mismatch error, local size 4 remote size 8", "size-mismatch", "collective mismatch"},
		{"h:1:2 [0] bootstrap.cc:9 NCCL WARN Message truncated : received 8 bytes instead of 4", "size-mismatch", "-"},
		{
			"h:1:2 [0] bootstrap.cc:9 NCCL WARN Message truncated : received 8 bytes instead of 4", "root-mismatch",
			"Message truncated",
		},
		{"Error: network AWS Libfabric not found", "no-network", "aws libfabric"},
		{"NET/OFI Couldn't find a device: no eligible provider of 4", "ofi-failure", "NET/OFI Couldn't"},
		{"iommu: Default domain type: Passthrough", "iommu-mode", "passthrough"},
		{"iommu: Default domain type: Translated", "iommu-mode", "translated"},
		{"DMAR: IOMMU enabled", "iommu-mode", "translated"},
		{"docker run --shm-size=512k app", "shm-size", "512k"},
		{"docker run --shm-size 2g app", "shm-size", "2g"},
		{"tmpfs 1T 0 1T 0% /dev/shm", "shm-size", "1T"},
		{"tmpfs 65536 0 65536 0% /dev/shm", "shm-size", "-"},
		{"--shm-size=1073741824", "shm-size", "1073741824"},
		{warn + "Error while creating shared memory segment /dev/shm/nccl-x (size 9637888)", "shm-failure", ""},
		{warn + "Error while attaching to shared memory segment /dev/shm/nccl-x (size 0)", "shm-failure", "-"},
		{warn + "Error: unlink of shared memory /dev/shm/nccl-x failed", "shm-failure", "-"},
		{"shared memory segment of 4 MiB was made", "shm-failure", "-"},
		{"h:1:2 [0] transport/nvls.cc:9 NCCL WARN Cuda failure 1 'invalid argument'", "nvls-failure", ""},
		{"the multicast group has failed members", "nvls-failure", "-"},
		{"16 nvls channels", "nvls-failure", "-"},
		{"h:1:2 [0] proxy.cc:9 NCCL WARN Proxy Call to rank 3 failed (Connect)", ConnectError, "proxy"},
		{"h:1:2 [0] NCCL INFO misc/socket.cc:9 -> 2 (Operation now in progress)", ConnectError, "timeout"},
		{warn + "socketStartConnect: Connect to 10.0.0.2<4> failed : No route to host", ConnectError, "unreachable"},
		{warn + "Connect to 10.0.0.2<4> failed : Connection refused, retrying", ConnectError, "-"},
		{"the connection timed out of ibv_modify_qp", ConnectError, "-"},
		{"Failed to create Completion Queue for mlx5_0", VerbsFailure, "create_cq"},
		{"ibv_reg_mr_iova2 failed: Bad address", VerbsFailure, "reg_mr_iova2 bad address"},
		{"modify_qp failed: Network is unreachable", VerbsFailure, "modify_qp unreachable"},
		{"NET/IB : cannot allocate memory for the request", VerbsFailure, "any cannot allocate memory"},
		{"python: cannot allocate memory", VerbsFailure, "-"},
		{"rx_discards_phy: 12", Counter, "rx_discards_phy 10"},
		{"rx_discards_phy: 4512", Counter, "rx_discards_phy 1000"},
		{"rx_discards_phy: 0", Counter, "-"},
		{"h:1:2 [0] NCCL INFO Bootstrap : Using lo:127.0.0.1<0>", Bootstrap, "lo "},
		{"h:1:2 [0] NCCL INFO Bootstrap : Using eth0:169.254.1.2<0>", Bootstrap, "eth0 169.254."},
		{"h:1:2 [0] NCCL INFO Bootstrap : Using eth0:2001:db8::1<0>", Bootstrap, "eth0 "},
		{"rank 0 -> NET/IB/0/GDRDMA by hand", OverNet, "IB GDRDMA"},
		{"2 GPUs via P2P/CUMEM/read by hand", "over-p2p", "CUMEM"},
		{"mpirun -np 24 -H a,b ./all_reduce_perf", Launched, "24"},
		{"ssh: Could not resolve hostname box-3.train: Name or service not known", "name-unknown", "box-3.train"},
		{"[c10d] The IPv4 network addresses of (box-0, 29400) cannot be retrieved (gai error: -2 - Name or service not " +
			"known).", "name-unknown", "box-0"},
		{"[c10d] The IPv6 network addresses of (box-0, 29400) cannot be retrieved (gai error: -2 - Name or service not " +
			"known).", "name-unknown", "-"},
		{"MNNVL state 3 healthMask 0x9a", "fabric-health", "0x9a"},
		{"MNNVL state 3 healthMask 0xaa", "fabric-health", "-"},
	} {
		s := read(t, c.text+"\n")
		o := s.First(c.kind)
		switch {
		case c.args == "-":
			if o != nil {
				t.Errorf("%q is %s %q", c.text, c.kind, o.Args)
			}
		case o == nil || !strings.HasPrefix(strings.Join(o.Args, " "), c.args):
			t.Errorf("%q: %s is %+v, want %q; it is %v", c.text, c.kind, o, c.args, kindsOf(s))
		}
	}
}

// NCCL's last error is the line behind the announcement, without the launcher's label; a warning that nothing knows is
// counted and sampled.
func TestLastErrorAndUnknown(t *testing.T) {
	s := read(t, "[rank3]: Last error:\n[rank3]: NET/IB : request 12 of 40 is gone\n")
	if o := s.First(LastError); o == nil || o.Arg(0) != "NET/IB : request # of # is gone" || !o.Ranks[3] {
		t.Errorf("%+v", o)
	}
	s = read(t, "h:1:2 [0] x.cc:1 NCCL WARN the synthetic moon is full\n")
	if s.Unknown != 1 || len(s.Samples) != 1 || s.Samples[0].Line != 1 {
		t.Errorf("%d unknown: %v", s.Unknown, s.Samples)
	}
}

// What a tool printed is no complaint of a person; the same words in a person's text are.
func TestToolsDoNotComplain(t *testing.T) {
	const text = "The all-reduce between our two nodes is slow, it reaches only 12 GB/s.\n"
	r := words().NewReader()
	if err := r.ReadOutput("tool", strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	s, err := r.Set()
	if err != nil || s.Told {
		t.Errorf("%v: %v", err, kindsOf(s))
	}
	if s := read(t, text); !s.Told {
		t.Errorf("%v", kindsOf(s))
	}
	if s := read(t, "hang\n"); !s.Told {
		t.Errorf("%v", kindsOf(s))
	}
	// Beside a tool's output, only sentences count that people write.
	m := synth.Machines()[0]
	list, err := m.Sweeps(sim.Fitted(), 0, synth.Sizes(2, 16), coll.AllReduce)
	if err != nil {
		t.Fatal(err)
	}
	table, err := m.Table(&list[0])
	if err != nil {
		t.Fatal(err)
	}
	if s := read(t, "Training on 2 nodes hangs after an hour\n"+table); !s.Told ||
		len(s.Tables) != 1 {
		t.Errorf("%v", kindsOf(s))
	}
}

// What is kept has bounds, and says what they cut.
func TestBoundsOfSets(t *testing.T) {
	var b strings.Builder
	for i := range maxDiffer + 50 {
		fmt.Fprintf(&b, "NCCL_SYNTHETIC=%d\n2: veth%d: <UP> mtu 1500 state UP\n", i, i)
	}
	s := read(t, b.String())
	if len(s.Values("NCCL_SYNTHETIC")) != maxDiffer || s.Dropped["settings"] != 50 || len(s.All(MTU)) != maxDiffer ||
		s.Dropped[string(MTU)] != 50 {
		t.Errorf("%d settings, %d interfaces, dropped %v", len(s.Values("NCCL_SYNTHETIC")), len(s.All(MTU)), s.Dropped)
	}
}
