//go:build linux

package native_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"busbar.dev/coll"
	"busbar.dev/engine/device"
	"busbar.dev/engine/device/native"
	"busbar.dev/engine/ranks"
)

// The test program is a worker itself where it is told to be.
func TestMain(m *testing.M) {
	if os.Getenv("BUSBAR_TEST_WORKER") != "" {
		if native.Serve(os.Stdin, os.Stdout, "test", func() { os.Exit(0) }) != nil {
			os.Exit(3)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var fake = sync.OnceValues(func() (string, error) { return compile() })

func compile(flags ...string) (string, error) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		return "", errors.New("no C compiler: the stand-in for the GPU's libraries cannot be built")
	}
	dir, err := os.MkdirTemp("", "busbar-fake")
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "libfake.so")
	out, err := exec.Command(cc,
		append(flags, "-O1", "-w", "-shared", "-fPIC", "-o", path, "testdata/fakegpu.c", "-lm")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cc: %w\n%s", err, out)
	}
	return path, nil
}

// team starts workers on fake GPUs.
func team(t *testing.T, n int, library string, settings ...string) device.Team {
	t.Helper()
	if library == "" {
		var err error
		if library, err = fake(); err != nil {
			t.Skip(err)
		}
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	env := append(os.Environ(), "BUSBAR_TEST_WORKER=1")
	for _, name := range []string{"CUDA", "NCCL", "NVML", "CUBLASLT", "HIP"} {
		env = append(env, "BUSBAR_"+name+"="+library)
	}
	env = append(env, settings...)
	var list device.Team
	for r := range n {
		p, err := ranks.Pipe([]string{exe}, env)
		if err != nil {
			t.Fatal(err)
		}
		w, err := device.NewWorker(t.Context(), r, p)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, w)
	}
	t.Cleanup(list.End)
	return list
}

// joined is a team of ranks.
func joined(t *testing.T, n int, library string, settings ...string) device.Team {
	list := team(t, n, library, settings...)
	if _, err := list.All(t.Context(), device.Request{Do: device.Open}, nil); err != nil {
		t.Fatal(err)
	}
	if err := list.Join(t.Context()); err != nil {
		t.Fatal(err)
	}
	return list
}

// Every collective gives right values, in and out of place, whatever the type, the reduction and the number of ranks.
func TestCollectives(t *testing.T) {
	for _, n := range []int{1, 3, 4} {
		list := joined(t, n, "")
		for _, kind := range coll.Kinds() {
			if kind == coll.Barrier || kind == coll.AllToAllV || kind == coll.Hypercube && n == 3 {
				continue
			}
			for _, size := range []int64{64, 70_000} {
				for _, inPlace := range []bool{false, true} {
					if inPlace && !kind.InPlace() {
						continue
					}
					right(t, list, device.Request{Op: kind, Bytes: size, Root: n - 1, InPlace: inPlace})
				}
			}
		}
		for _, dtype := range []string{
			"int8", "uint8", "int32", "uint32", "int64", "uint64", "half", "double", "bfloat16", "f8e4m3", "f8e5m2",
		} {
			for _, redop := range []string{"sum", "prod", "min", "max"} {
				if dtype == "f8e5m2" && redop == "prod" || testing.Short() && redop != "sum" {
					continue
				}
				right(t, list, device.Request{Op: coll.AllReduce, Bytes: 40_000, Dtype: dtype, Redop: redop})
			}
		}
	}
}

// right runs a collective and expects no wrong element on any rank.
func right(t *testing.T, list device.Team, q device.Request) {
	t.Helper()
	q.Do, q.Check, q.Warm, q.Iters = device.Collective, true, 1, 2
	answers, err := list.All(t.Context(), q, nil)
	if err != nil {
		t.Fatalf("%+v on %d ranks: %v", q, len(list), err)
	}
	for r, a := range answers {
		if a.Timing == nil || a.Timing.Wrong == nil || *a.Timing.Wrong != 0 || a.Timing.Micros <= 0 {
			t.Errorf("%+v, rank %d of %d: %+v", q, r, len(list), a.Timing)
		}
	}
}

// A sum that lacks a rank is counted as wrong, and so is a product.
func TestWrongValues(t *testing.T) {
	list := joined(t, 3, "", "FAKE_WRONG=1")
	answers, err := list.All(t.Context(),
		device.Request{Do: device.Collective, Op: coll.AllReduce, Bytes: 400_000, Check: true, Iters: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for r, a := range answers {
		if *a.Timing.Wrong < 50_000 || *a.Timing.Wrong > 100_000 {
			t.Errorf("rank %d: %d wrong of 100000 elements that all lack rank 2", r, *a.Timing.Wrong)
		}
	}
	a, err := list[0].Ask(t.Context(), device.Request{Do: device.Product, M: 8, N: 8, K: 16, Dtype: "float", Check: true})
	if err != nil || a.Product.Wrong != a.Product.Tested || a.Product.Tested == 0 {
		t.Errorf("%+v, %v", a.Product, err)
	}
}

// Pairs, copies, memory and products of all types, on values that are looked at.
func TestSingle(t *testing.T) {
	list := joined(t, 2, "", "FAKE_GPUS=2")
	answers, err := list.All(t.Context(), device.Request{Do: device.Pair, Bytes: 100_000, Check: true, Iters: 2},
		func(r int, q *device.Request) {
			if r == 0 {
				q.Send = new(1)
			} else {
				q.Receive = new(0)
			}
		})
	if err != nil || *answers[1].Timing.Wrong != 0 {
		t.Fatalf("%+v, %v", answers, err)
	}
	w := list[0]
	for _, q := range []device.Request{{Do: device.Memory}, {Do: device.Copies}, {Do: device.Peer, Other: 1}} {
		q.Bytes, q.Iters = 3_000_000, 2
		a, err := w.Ask(t.Context(), q)
		if err != nil {
			t.Fatal(q.Do, err)
		}
		for _, r := range a.Rates {
			if r.GBps <= 0 || r.Wrong != nil && *r.Wrong != 0 {
				t.Errorf("%s: %+v", q.Do, r)
			}
		}
	}
	for _, dtype := range []string{"float", "tf32", "half", "bfloat16", "double", "f8e4m3"} {
		a, err := w.Ask(t.Context(), device.Request{
			Do: device.Product, M: 24, N: 20, K: 36, Dtype: dtype, Check: true, Iters: 1,
		})
		by := "cuBLAS" // as frameworks do, but for these
		if dtype == "double" || dtype == "f8e4m3" {
			by = "cuBLASLt"
		}
		if err != nil || a.Product.Wrong != 0 || a.Product.TFLOPS <= 0 || a.Product.MHz != 1980 || a.Product.By != by {
			t.Errorf("%s: %+v, %v", dtype, a.Product, err)
		}
	}
}

// An NCCL before 2.23 takes the key by value.
func TestOldNCCL(t *testing.T) {
	path, err := compile("-DOLD")
	if err != nil {
		t.Skip(err)
	}
	right(t, joined(t, 3, path), device.Request{Op: coll.AllReduce, Bytes: 4096})
}

// AMD's libraries are called by their own names.
func TestAMD(t *testing.T) {
	log := filepath.Join(t.TempDir(), "calls")
	list := joined(t, 2, "", "BUSBAR_GPU_VENDOR=amd", "FAKE_GPUS=2", "FAKE_LOG="+log)
	if d := list[0].Device; d.Vendor != "amd" || d.NCCL != "2.28.9" {
		t.Errorf("%+v", d)
	}
	for _, kind := range coll.Kinds() { // as on NVIDIA's
		for _, inPlace := range []bool{false, true} {
			if kind != coll.Barrier && kind != coll.AllToAllV && (!inPlace || kind.InPlace()) {
				right(t, list, device.Request{Op: kind, Bytes: 1 << 16, Root: 1, InPlace: inPlace})
			}
		}
	}
	for _, dtype := range []string{"int8", "int32", "int64", "half", "double", "bfloat16", "f8e4m3"} {
		right(t, list, device.Request{Op: coll.AllReduce, Bytes: 40_000, Dtype: dtype, Redop: "max"})
	}
	answers, err := list.All(t.Context(), device.Request{Do: device.Pair, Bytes: 100_000, Check: true, Iters: 2},
		func(r int, q *device.Request) { q.Send, q.Receive = new(1-r), new(1-r) })
	if err != nil || *answers[0].Timing.Wrong != 0 || *answers[1].Timing.Wrong != 0 {
		t.Errorf("%+v %v", answers, err)
	}
	for _, q := range []device.Request{{Do: device.Memory}, {Do: device.Copies}, {Do: device.Peer, Other: 1}} {
		q.Bytes, q.Iters = 1<<20, 1
		a, err := list[0].Ask(t.Context(), q)
		if err != nil {
			t.Error(q.Do, err)
		}
		for _, r := range a.Rates {
			if r.GBps <= 0 || r.Wrong != nil && *r.Wrong != 0 {
				t.Errorf("%s: %+v", q.Do, r)
			}
		}
	}
	if _, err := list.All(t.Context(), device.Request{Do: device.Leave}, nil); err != nil {
		t.Error(err)
	}
	if _, err := list[0].Ask(t.Context(), device.Request{
		Do: device.Product, M: 8, N: 8, K: 8, Dtype: "half",
	}); err == nil || !strings.Contains(err.Error(), "NVIDIA's GPUs only") {
		t.Error(err)
	}
	data, _ := os.ReadFile(log)
	for _, name := range []string{
		"hipInit", "hipSetDevice", "hipMalloc", "hipMemcpyHtoDAsync", "hipMemcpyDtoH", "hipMemcpyDtoDAsync",
		"hipMemsetD8Async", "hipStreamSynchronize", "hipEventElapsedTime", "hipMemcpyPeerAsync", "hipHostMalloc", "hipFree",
	} {
		if !strings.Contains(string(data), name+"\n") {
			t.Errorf("%s was not called", name)
		}
	}
}

// What is missing is named, with where it was looked for.
func TestRefusals(t *testing.T) {
	ask := func(q device.Request, settings ...string) error {
		w := team(t, 1, "", settings...)[0]
		if q.Do != device.Open && q.Do != device.Health {
			if _, err := w.Ask(t.Context(), device.Request{Do: device.Open}); err != nil {
				return err
			}
		}
		_, err := w.Ask(t.Context(), q)
		return err
	}
	for _, tt := range []struct {
		q        device.Request
		settings []string
		want     []string
	}{
		{
			device.Request{Do: device.Open},
			[]string{"BUSBAR_CUDA=/nowhere/libcuda.so.1", "BUSBAR_GPU_VENDOR=nvidia"},
			[]string{"libcuda.so.1 (the NVIDIA driver) could not be loaded", "tried /nowhere/libcuda.so.1"},
		},
		{
			device.Request{Do: device.Open},
			[]string{"BUSBAR_CUDA=/nowhere/a", "BUSBAR_HIP=/nowhere/b"},
			[]string{"libcuda.so.1", "libamdhip64.so", "/nowhere/a, /nowhere/b"},
		},
		{
			device.Request{Do: device.Key},
			[]string{"BUSBAR_NCCL=/nowhere/libnccl.so.2"},
			[]string{"libnccl.so.2 (NCCL) could not be loaded", "BUSBAR_NCCL=FILE names it", "/nowhere/libnccl.so.2"},
		},
		{device.Request{Do: device.Health}, []string{"BUSBAR_NVML=/nowhere/x"}, []string{"NVML", "/nowhere/x"}},
		{
			device.Request{Do: device.Product, M: 8, N: 8, K: 8, Dtype: "half"},
			[]string{"BUSBAR_CUBLASLT=/nowhere/x"},
			[]string{"cuBLASLt", "/nowhere/x"},
		},
		{
			device.Request{Do: device.Product, M: 8, N: 8, K: 8, Dtype: "half"},
			[]string{"FAKE_ALGOS=0"},
			[]string{"no algorithm"},
		},
		{device.Request{Do: device.Product, M: 0, N: 8, K: 8, Dtype: "half"}, nil, []string{"expected sides"}},
		{device.Request{Do: device.Product, M: 8, N: 8, K: 8, Dtype: "int8"}, nil, []string{"not measured"}},
		{device.Request{Do: device.Open, GPU: 7}, nil, []string{"no GPU 7: the driver has 1"}},
		{
			device.Request{Do: device.Open},
			[]string{"FAKE_BUSY=46"},
			[]string{"CUDA_ERROR_DEVICE_UNAVAILABLE", "exclusive mode"},
		},
		{
			device.Request{Do: device.Memory, Bytes: 1 << 20},
			[]string{"FAKE_SYNC=214"},
			[]string{"CUDA_ERROR_ECC_UNCORRECTABLE"},
		},
		{
			device.Request{Do: device.Memory, Bytes: 1 << 38},
			nil,
			[]string{"CUDA_ERROR_OUT_OF_MEMORY", "allocation of 274877906944 bytes"},
		},
		{device.Request{Do: device.Collective, Op: coll.AllReduce}, nil, []string{"no communicator was joined"}},
		{device.Request{Do: device.Join, Key: "00", Ranks: 2}, nil, []string{"a key of 1 bytes; expected 128"}},
		{device.Request{Do: "dance"}, nil, []string{`"dance"`}},
		{device.Request{Do: device.Memory, Bytes: -1}, nil, []string{"out of bounds"}},
		{
			device.Request{Do: device.Open},
			[]string{"BUSBAR_GPU_VENDOR=amd", "BUSBAR_HIP=/nowhere/b"},
			[]string{"libamdhip64.so (AMD's HIP) could not be loaded", "tried /nowhere/b"},
		},
		{
			device.Request{Do: device.Key},
			[]string{"BUSBAR_GPU_VENDOR=amd", "BUSBAR_NCCL=/nowhere/librccl.so.1"},
			[]string{"librccl.so.1", "tried /nowhere/librccl.so.1"},
		},
		{
			device.Request{Do: device.Memory, Bytes: 1 << 38},
			[]string{"BUSBAR_GPU_VENDOR=amd"},
			[]string{"out of memory", "allocation of 274877906944 bytes"},
		},
		{device.Request{Do: device.Open, GPU: 7}, []string{"BUSBAR_GPU_VENDOR=amd"}, []string{"no GPU 7: the driver has 1"}},
	} {
		err := ask(tt.q, tt.settings...)
		var f *device.Failure
		if !errors.As(err, &f) {
			t.Errorf("%+v %v: %v", tt.q, tt.settings, err)
			continue
		}
		for _, w := range tt.want {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%+v %v: %v; expected %q", tt.q, tt.settings, err, w)
			}
		}
	}
}

// A rank that is killed in the middle is named, and nobody is left behind.
func TestKilled(t *testing.T) {
	for _, vendor := range []string{"nvidia", "amd"} {
		t.Run(vendor, func(t *testing.T) { killed(t, "BUSBAR_GPU_VENDOR="+vendor) })
	}
}

func killed(t *testing.T, vendor string) {
	list := joined(t, 3, "", "FAKE_HANG=1", vendor)
	var victim *device.Worker = list[1]
	go func() {
		time.Sleep(100 * time.Millisecond)
		syscall.Kill(victim.Hello.PID, syscall.SIGKILL)
	}()
	_, err := list.All(t.Context(), device.Request{Do: device.Collective, Op: coll.AllReduce, Bytes: 4096, Iters: 1}, nil)
	var gone *device.GoneError
	if !errors.As(err, &gone) || gone.Rank != 1 || !strings.Contains(err.Error(), "signal: killed") {
		t.Errorf("%v", err)
	}
	begin := time.Now()
	list.End()
	for _, w := range list {
		if err := syscall.Kill(w.Hello.PID, 0); err == nil {
			t.Errorf("rank %d lives on after %v", w.Rank, time.Since(begin))
		}
	}
}

// A collective that does not end is given up after a while.
func TestHung(t *testing.T) {
	for _, vendor := range []string{"nvidia", "amd"} {
		t.Run(vendor, func(t *testing.T) { hung(t, "BUSBAR_GPU_VENDOR="+vendor) })
	}
}

func hung(t *testing.T, vendor string) {
	list := joined(t, 2, "", "FAKE_HANG=0", vendor)
	ctx, cancel := context.WithTimeoutCause(t.Context(), 200*time.Millisecond, errors.New("no end after 200ms"))
	defer cancel()
	_, err := list.All(ctx, device.Request{Do: device.Collective, Op: coll.AllReduce, Bytes: 4096, Iters: 1}, nil)
	if err == nil || !strings.Contains(err.Error(), "no end after 200ms") {
		t.Error(err)
	}
}

// Requests of any kind do no harm.
func FuzzAnswer(f *testing.F) {
	f.Add(`{"id":1,"do":"open"}`)
	f.Add(`{"do":"collective","op":"all_reduce","bytes":-5}`)
	f.Add(`{`)
	f.Fuzz(func(t *testing.T, line string) {
		var out strings.Builder
		native.Serve(strings.NewReader(line), &out, "test", func() {})
		if !strings.HasSuffix(out.String(), "}\n") {
			t.Errorf("%q", out.String())
		}
	})
}
