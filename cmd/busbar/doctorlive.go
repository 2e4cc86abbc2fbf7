package main

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/input/live"
)

// liveFiles are what the kernel says about a machine that matters here.
var liveFiles = []string{"/proc/cmdline", "/proc/modules", "/proc/self/limits", "/proc/self/status"}

// liveEvidence reads this machine: its topology as map does, what the kernel says,
// and the environment. It only reads.
func (e *env) liveEvidence(r *evidence.Reader, o common) error {
	if e.fence != nil {
		return errors.New("--live cannot be asked for here; run busbar doctor --live on the machine")
	}
	frags, err := live.Read(e.ctx, e.progressOf(o))
	if err != nil {
		return err
	}
	for _, f := range frags {
		r.Fragment(f)
	}
	for _, name := range liveFiles {
		data, err := os.ReadFile(name)
		if err != nil {
			continue // another system, or not for us to see
		}
		if err := r.ReadOutput(name, strings.NewReader(liveText(name, string(data)))); err != nil {
			return err
		}
	}
	var settings []string
	for _, kv := range os.Environ() {
		if name, _, _ := strings.Cut(kv, "="); liveSetting(name) {
			settings = append(settings, kv)
		}
	}
	return r.ReadOutput("environment", strings.NewReader(strings.Join(settings, "\n")+"\n"+shmOf("/dev/shm")))
}

// liveSetting reports a variable that matters to collectives; the others of an
// environment are nobody's business.
func liveSetting(name string) bool {
	for _, p := range []string{"NCCL_", "RCCL_", "UCX_", "GLOO_", "FI_", "OFI_NCCL_", "MASTER_", "TORCH_NCCL_", "CUDA_", "HSA_", "WORLD_SIZE"} {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}

// liveText writes what the kernel prints in the form that tools print.
func liveText(name, text string) string {
	switch name {
	case "/proc/self/limits":
		for _, line := range strings.Split(text, "\n") {
			if rest, ok := strings.CutPrefix(line, "Max locked memory"); ok {
				f := strings.Fields(rest)
				if len(f) > 0 && f[0] != "unlimited" {
					var n uint64
					if _, err := fmt.Sscan(f[0], &n); err == nil {
						return fmt.Sprintf("max locked memory (kbytes, -l) %d\n", n/1024)
					}
				}
			}
		}
		return ""
	case "/proc/self/status":
		for _, line := range strings.Split(text, "\n") {
			if strings.HasPrefix(line, "Cpus_allowed_list") {
				return line + "\n"
			}
		}
		return ""
	}
	return text
}
