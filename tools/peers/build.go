package main

import (
	"cmp"
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

//go:embed src
var sources embed.FS

// build makes busbar and the peers' programs in a folder.
func build(dir string) error {
	for _, name := range []string{"mpi.c", "gloo.cc", "ring.c"} {
		b, err := sources.ReadFile("src/" + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	for _, words := range [][]string{
		{"go", "build", "-C", "../..", "-trimpath", "-o", filepath.Join(dir, "busbar"), "./cmd/busbar"},
		{"mpicc.openmpi", "-O3", "-march=native", "-o", filepath.Join(dir, "openmpi"), filepath.Join(dir, "mpi.c")},
		{"mpicc.mpich", "-O3", "-march=native", "-o", filepath.Join(dir, "mpich"), filepath.Join(dir, "mpi.c")},
		{
			"g++", "-O3", "-march=native", "-std=c++14", "-w", "-o", filepath.Join(dir, "gloo"), filepath.Join(dir, "gloo.cc"),
			"-lgloo", "-lpthread",
		},
		{"gcc", "-O2", "-o", filepath.Join(dir, "ring"), filepath.Join(dir, "ring.c")},
	} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w (make debian brings the peers)\n%s", strings.Join(words, " "), err, out)
		}
	}
	return nil
}

// describe is the machine and the versions in words.
func describe() []string {
	cpu, _ := os.ReadFile("/proc/cpuinfo")
	_, model, _ := strings.Cut(string(cpu), "model name\t: ")
	model, _, _ = strings.Cut(model, "\n")
	list := []string{fmt.Sprintf("%s, %d cores, Linux %s, %s", cmp.Or(model, runtime.GOARCH), runtime.NumCPU(),
		firstLine("uname", "-r"), runtime.Version())}
	for _, x := range []struct{ name, pack string }{
		{"Open MPI", "openmpi-bin"}, {"MPICH", "mpich"}, {"Gloo", "libgloo-dev"},
	} {
		list = append(list, x.name+" "+firstLine("dpkg-query", "-W", "-f", "${Version}", x.pack))
	}
	return append(list, "busbar "+firstLine("git", "describe", "--always", "--dirty"))
}

// firstLine is what a program says first, "?" where it says nothing.
func firstLine(name string, args ...string) string {
	b, _ := exec.Command(name, args...).Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return cmp.Or(line, "?")
}
