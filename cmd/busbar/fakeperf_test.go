package main

import (
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// fakePerf is a stand-in for nccl-tests' all_reduce_perf: it takes the same flags, heeds
// NCCL_ALGO, NCCL_PROTO and the numbers of channels, and prints what release 2.17 prints. Its
// machine has eight GPUs without NVLS, on which the tree is best below 1 MiB and the ring above,
// and whose NCCL always takes the tree.
func fakePerf() {
	f := flag.NewFlagSet("all_reduce_perf", flag.ExitOnError)
	least, most, factor := f.Int64("b", 32<<20, ""), f.Int64("e", 32<<20, ""), f.Int64("f", 2, "")
	warm, iters, gpus, check := f.Int("w", 5, ""), f.Int("n", 20, ""), f.Int("g", 1, ""), f.Int("c", 1, "")
	dtype := f.String("d", "float", "")
	f.Parse(os.Args[1:])
	host, _ := os.Hostname()
	ranks := *gpus
	if n, err := strconv.Atoi(os.Getenv("FAKE_RANKS")); err == nil {
		ranks = n
	}
	if os.Getenv("FAKE_HANG") != "" {
		time.Sleep(time.Minute) // a program that hangs, until it is killed
	}
	if os.Getenv("FAKE_OLD") == "" { // old releases do not say what they are
		fmt.Printf("# nccl-tests version 2.17.1 nccl-headers=22809 nccl-library=22809\n# Collective test starting: " +
			"all_reduce_perf\n")
	}
	fmt.Printf("# nThread 1 nGpus %d minBytes %d maxBytes %d step: %d(factor) warmup iters: %d iters: %d agg iters: 1 "+
		"validation: %d graph: 0\n#\n# Using devices\n", *gpus, *least, *most, *factor, *warm, *iters, *check)
	for r := range ranks {
		fmt.Printf("#  Rank %2d Group  0 Pid %6d on %10s device %2d [0000:%02x:00] NVIDIA A100-SXM4-80GB\n", r, os.Getpid(),
			"node0", r, 0x10+r)
	}
	algo, proto := strings.ToLower(os.Getenv("NCCL_ALGO")), strings.ToLower(os.Getenv("NCCL_PROTO"))
	if strings.HasPrefix(algo, "nvls") || os.Getenv("FAKE_BROKEN") != "" {
		fmt.Printf("%s: Test NCCL failure common.cu:1001 'invalid usage (run with NCCL_DEBUG=WARN for details) / '\n .. %s "+
			"pid %d: Test failure common.cu:891\n", host, host, os.Getpid())
		os.Exit(3)
	}
	fmt.Printf("#\n#%61s%35s\n", "out-of-place", "in-place")
	fmt.Printf("#       size         count      type   redop    root     time   algbw   busbw  #wrong     time   algbw  " +
		" busbw  #wrong \n")
	fmt.Printf("#        (B)    (elements)                               (us)  (GB/s)  (GB/s)             (us)  (GB/s)  " +
		"(GB/s)         \n")
	for size := *least; size <= *most; size *= max(*factor, 2) {
		us := fakeMicros(algo, proto, size)
		alg := float64(size) / us / 1e3
		bus := alg * 2 * float64(ranks-1) / float64(ranks)
		wrong := "0"
		if *check == 0 {
			wrong = "N/A"
		}
		half := fmt.Sprintf("  %7.2f  %6.2f  %6.2f  %6s", us, alg, bus, wrong)
		if os.Getenv("FAKE_NAN") == fmt.Sprint(size) {
			half = fmt.Sprintf("  %7s  %6s  %6s  %6s", "nan", "-nan", "-nan", wrong)
		}
		fmt.Printf("%12d  %12d  %8s  %6s  %6d%s%s\n", size, size/4, *dtype, "sum", -1, half, half)
		if *most == *least {
			break
		}
	}
	fmt.Printf("# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 12.3456 \n#\n")
	if os.Getenv("FAKE_OLD") == "" {
		fmt.Printf("# Collective test concluded: all_reduce_perf\n#\n")
	}
}

// fakeMicros is how long it takes.
func fakeMicros(algo, proto string, size int64) float64 {
	latency, rate := 20.0, 100.0 // µs, GB/s
	if algo == "ring" {
		latency, rate = 40, 200
	}
	switch proto {
	case "ll":
		latency, rate = latency/2, rate/4
	case "ll128":
		latency, rate = latency*0.8, rate*0.9
	}
	if n, err := strconv.Atoi(os.Getenv("NCCL_MAX_NCHANNELS")); err == nil {
		rate *= float64(min(n, 8)) / 8
	}
	return latency + float64(size)/rate/1e3
}
