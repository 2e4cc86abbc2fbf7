package main

import (
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"busbar.dev/internal/failure"
	"busbar.dev/launch"
)

// allowed are the cores that this process may use: what the launcher and cgroups leave it.
func allowed() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var list []int
	for c := range len(set) * 64 {
		if set.IsSet(c) {
			list = append(list, c)
		}
	}
	return list, nil
}

// become binds this thread and lets it become the program: the kernel keeps the cores and the
// memory policy of the thread that calls execve.
func become(b *launch.Binding, args []string) error {
	path, err := findProgram(args[0])
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	if b.Cores != "" {
		cores, err := launch.ParseCores(b.Cores)
		if err != nil {
			return err
		}
		var set unix.CPUSet
		for _, c := range cores {
			set.Set(c)
		}
		if err := unix.SchedSetaffinity(0, &set); err != nil {
			return failure.Cannot(fmt.Errorf("binding to cores %s: %w; --no-bind leaves them", b.Cores, err))
		}
	}
	if b.NUMA >= 0 {
		var set unix.CPUSet
		set.Set(b.NUMA)
		// Preferred, not bound: a domain that is full must not end the program. Containers often
		// forbid the call, which costs speed only.
		if err := unix.SetMemPolicy(unix.MPOL_PREFERRED, &set); err != nil {
			fmt.Fprintf(os.Stderr, "busbar exec: rank %d: memory of NUMA domain %d is not preferred: %v\n", b.Rank, b.NUMA, err)
		}
	}
	env := os.Environ()
	for k, v := range b.Env {
		env = append(env, k+"="+v)
	}
	if err := syscall.Exec(path, args, env); err != nil {
		return failure.Cannot(fmt.Errorf("%s: %w", path, err))
	}
	return nil
}
