//go:build unix

package main

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// machine tells how much of the processors others took while something was measured, and gives
// what is measured precedence where control groups allow that.
type machine struct {
	acct, shares string // groups of this process and all it starts; "" where there are none
}

const (
	acctRoot = "/sys/fs/cgroup/cpuacct"
	cpuRoot  = "/sys/fs/cgroup/cpu"
)

// occupy puts this process into groups of its own.
func occupy() *machine {
	m := &machine{}
	name := fmt.Sprintf("busbar-peers-%d", os.Getpid())
	enter := func(root string) string {
		dir := filepath.Join(root, name)
		if os.Mkdir(dir, 0o755) != nil {
			return ""
		}
		if os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644) != nil {
			os.Remove(dir)
			return ""
		}
		return dir
	}
	m.acct = enter(acctRoot)
	if m.shares = enter(cpuRoot); m.shares != "" {
		os.WriteFile(filepath.Join(m.shares, "cpu.shares"), []byte("200000"), 0o644)
	}
	return m
}

// leave takes the groups away.
func (m *machine) leave() {
	for root, dir := range map[string]string{acctRoot: m.acct, cpuRoot: m.shares} {
		if dir != "" {
			os.WriteFile(filepath.Join(root, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())), 0o644)
			for range 20 {
				if os.Remove(dir) == nil {
					break
				}
				time.Sleep(50 * time.Millisecond)
			}
		}
	}
}

// others starts a watch; what it returns says which share of all processors others took since.
func (m *machine) others() func() float64 {
	all, own, begin := m.busy(), m.own(), time.Now()
	return func() float64 {
		took := (m.busy() - all) - (m.own() - own)
		return max(took.Seconds()/time.Since(begin).Seconds()/float64(runtime.NumCPU()), 0)
	}
}

// busy is the processor time of everybody.
func (m *machine) busy() time.Duration {
	if m.acct == "" {
		return 0
	}
	return usage(acctRoot)
}

func (m *machine) own() time.Duration {
	if m.acct == "" {
		return 0
	}
	return usage(m.acct)
}

func usage(dir string) time.Duration {
	b, _ := os.ReadFile(filepath.Join(dir, "cpuacct.usage"))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return time.Duration(n)
}

// describe is the machine and the versions in words.
func describe() []string {
	list := []string{fmt.Sprintf("%s, %d cores, Linux %s, %s", cpuModel(), runtime.NumCPU(), firstLine("uname", "-r"), runtime.Version())}
	for _, x := range []struct{ name, pack string }{{"Open MPI", "openmpi-bin"}, {"MPICH", "mpich"}, {"Gloo", "libgloo-dev"}} {
		list = append(list, x.name+" "+firstLine("dpkg-query", "-W", "-f", "${Version}", x.pack))
	}
	return append(list, "busbar "+firstLine("git", "describe", "--always", "--dirty"))
}

func cpuModel() string {
	b, _ := os.ReadFile("/proc/cpuinfo")
	for _, l := range strings.Split(string(b), "\n") {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == "model name" {
			return strings.TrimSpace(v)
		}
	}
	return runtime.GOARCH
}

// firstLine is what a program says first, "?" where it says nothing.
func firstLine(name string, args ...string) string {
	b, _ := exec.Command(name, args...).Output()
	line, _, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	return cmp.Or(line, "?")
}
