//go:build linux

// Busbar-gpu works GPUs for busbar: it loads the vendor's libraries at run time and answers requests, one JSON object a
// line.
//
//	busbar-gpu work                      answers on standard output what standard input asks
//	busbar-gpu work --connect HOST:PORT  the same over a connection to the busbar that waits there
//	busbar-gpu health                    prints what the driver says of the GPUs
//	busbar-gpu version
//
// BUSBAR_NCCL, BUSBAR_CUBLASLT, BUSBAR_CUDA, BUSBAR_NVML and BUSBAR_HIP name a library's file or folder where it is
// found by no other way. docs/format/gpu.md describes the lines. Exit codes are those of busbar.
package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime/debug"
	"time"

	"busbar.dev/engine/device"
	"busbar.dev/engine/device/native"
)

const usage = `busbar-gpu works GPUs for busbar bench gpu, busbar check and busbar calibrate --live.

  busbar-gpu work [--connect HOST:PORT]   answer requests, one JSON object a line (docs/format/gpu.md)
  busbar-gpu health                       print what the driver says of the GPUs
  busbar-gpu version

BUSBAR_NCCL, BUSBAR_CUBLASLT, BUSBAR_CUDA, BUSBAR_NVML and BUSBAR_HIP name a library's file or folder.
`

func main() { os.Exit(run(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)) }

func run(args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	const bad, cannot = 2, 3
	if len(args) == 0 {
		fmt.Fprint(stderr, usage)
		return bad
	}
	switch args[0] {
	case "work":
		if err := work(args[1:], stdin, stdout); err != nil {
			fmt.Fprintln(stderr, "busbar-gpu:", err)
			return cannot
		}
		return 0
	case "health":
		a := new(native.Worker).Answer(device.Request{Do: device.Health})
		if a.Failure != nil {
			fmt.Fprintln(stderr, "busbar-gpu:", a.Failure)
			return cannot
		}
		stdout.Write(device.Line(a))
		return 0
	case "version", "--version":
		fmt.Fprintln(stdout, "busbar-gpu", version())
		return 0
	case "help", "--help", "-h":
		fmt.Fprint(stdout, usage)
		return 0
	}
	fmt.Fprintf(stderr, "busbar-gpu: %s: expected work, health or version\n%s", args[0], usage)
	return bad
}

// work answers requests. The process ends with them at once, whatever it is doing: only so does a GPU get rid of a
// kernel that waits for ranks that are gone.
func work(args []string, r io.Reader, w io.Writer) error {
	if len(args) == 2 && args[0] == "--connect" {
		token := os.Getenv("BUSBAR_GPU_TOKEN")
		if token == "" {
			return errors.New("BUSBAR_GPU_TOKEN is not set; expected the launcher to pass it on, as srun does, and Open MPI " +
				"with mpirun -x BUSBAR_GPU_TOKEN")
		}
		conn, err := net.DialTimeout("tcp", args[1], 30*time.Second)
		if err != nil {
			return err
		}
		defer conn.Close()
		if _, err := fmt.Fprintf(conn, "%s\n", token); err != nil {
			return err
		}
		r, w = conn, conn
	} else if len(args) > 0 {
		return fmt.Errorf("work takes --connect HOST:PORT and nothing else")
	}
	return native.Serve(r, w, "busbar-gpu "+version(), func() { os.Exit(0) })
}

func version() string {
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "devel"
}
