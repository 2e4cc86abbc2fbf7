package bench

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/engine"
	"busbar.dev/result"
)

// Here is what all sweeps have in common that a group measures from now on, with a program of the
// given version.
func Here(g *engine.Group, version string) result.Sweep {
	s := result.Sweep{
		Source: result.Measured, Transport: string(g.Transport()), When: time.Now().UTC().Truncate(time.Second),
		Session: NewSession(), Tool: "busbar " + version, Machine: machine(), Hosts: cluster.FormatHosts(g.Hosts()),
	}
	per := map[string]int{}
	for _, m := range g.Members() {
		per[m.Host]++
	}
	s.Nodes, s.PerNode = result.Evenly(per, g.Size())
	return s
}

// NewSession is a name that what one run of a program measures shares.
func NewSession() string {
	var b [6]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// machine is what a result depends on of the machine that this process runs on.
func machine() *result.Machine {
	m := &result.Machine{OS: runtime.GOOS + "/" + runtime.GOARCH, CPUs: runtime.NumCPU()}
	if b, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		m.Kernel = strings.TrimSpace(string(b))
	}
	processors := 0
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(b)) {
			k, v, _ := strings.Cut(line, ":")
			switch strings.TrimSpace(k) {
			case "processor":
				processors++
			case "model name":
				m.CPU = strings.TrimSpace(v)
			}
		}
	}
	m.CPUs = max(m.CPUs, processors) // a rank that is kept on one processor sees only that
	return m
}

// Crowded says that ranks wait for processors rather than for each other; "" where they do not.
func Crowded(members []engine.Member) string {
	per := map[string]int{}
	most := 0
	for _, m := range members {
		per[m.Host]++
		most = max(most, per[m.Host])
	}
	if cpus := machine().CPUs; most > cpus {
		return fmt.Sprintf("%d ranks share %d processors of a host: they wait for those as well, and figures scatter", most,
			cpus)
	}
	return ""
}
