//go:build unix

package main

import (
	"embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

//go:embed src
var sources embed.FS

// packages are Debian's, with what each brings that is looked for.
var packages = []struct{ name, tool string }{
	{"openmpi-bin", "mpirun.openmpi"},
	{"libopenmpi-dev", "mpicc.openmpi"},
	{"mpich", "mpirun.mpich"},
	{"libmpich-dev", "mpicc.mpich"},
	{"libgloo-dev", "/usr/include/gloo/allreduce.h"},
	{"g++", "g++"},
	{"iproute2", "ip"},
}

// missing are the packages that are not there.
func missing() []string {
	var list []string
	for _, p := range packages {
		_, err := exec.LookPath(p.tool)
		if strings.HasPrefix(p.tool, "/") {
			_, err = os.Stat(p.tool)
		}
		if err != nil {
			list = append(list, p.name)
		}
	}
	return list
}

// install brings the peers, where that is possible.
func install() error {
	list := missing()
	if len(list) == 0 {
		return nil
	}
	by := "apt-get install --no-install-recommends " + strings.Join(list, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Getuid() != 0 {
		return fmt.Errorf("not installed: %s; on Debian, as root: %s", strings.Join(list, ", "), by)
	}
	fmt.Fprintln(os.Stderr, by)
	cmd := exec.Command("sh", "-c", "apt-get update -q && DEBIAN_FRONTEND=noninteractive "+strings.Replace(by, "install", "install -qy", 1))
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", by, err, out)
	}
	return nil
}

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
		{"go", "build", "-trimpath", "-o", filepath.Join(dir, "busbar"), "./cmd/busbar"},
		{"mpicc.openmpi", "-O3", "-march=native", "-o", filepath.Join(dir, "openmpi"), filepath.Join(dir, "mpi.c")},
		{"mpicc.mpich", "-O3", "-march=native", "-o", filepath.Join(dir, "mpich"), filepath.Join(dir, "mpi.c")},
		{"g++", "-O3", "-march=native", "-std=c++14", "-w", "-o", filepath.Join(dir, "gloo"), filepath.Join(dir, "gloo.cc"), "-lgloo", "-lpthread"},
		{"gcc", "-O2", "-o", filepath.Join(dir, "ring"), filepath.Join(dir, "ring.c")},
	} {
		if out, err := exec.Command(words[0], words[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(words, " "), err, out)
		}
	}
	return nil
}
