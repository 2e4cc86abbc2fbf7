package evidence

import (
	"regexp"
	"strings"

	"busbar.dev/finding"
)

// envPatterns are how settings are written: in environments, scripts, manifests
// and in what NCCL says it took from them.
type envPatterns struct {
	assigned, logged, named *regexp.Regexp
}

// envReader finds settings.
type envReader struct {
	*envPatterns
	pending string // a manifest's "name:" whose "value:" is to come
}

func newEnvPatterns() *envPatterns {
	const name = `((?:NCCL|RCCL|UCX|GLOO|FI|OFI_NCCL|OMPI|MASTER|TORCH_NCCL|CUDA|HSA|MC|NVSHMEM|OMP|PYTORCH|TORCH)_[A-Z0-9_]+|WORLD_SIZE|RANK|LOCAL_RANK)`
	return &envPatterns{
		assigned: regexp.MustCompile(`\b` + name + `["'\]]{0,3}\s*[=:]\s*["']?([^\s"',;})]*)`),
		logged:   regexp.MustCompile(name + ` (?:set by environment|set|environment variable) to ([^\s]+)`),
		named:    regexp.MustCompile(`^\s*-?\s*name:\s*["']?` + name + `["']?\s*$`),
	}
}

// envWords are the words by which lines with settings are found.
const envWords = "nccl_|ucx_|gloo_|fi_|master_|cuda_|world_size|ompi_|hsa_|mc_mtu|value:"

// read files the settings of a line. One in the middle of a sentence was talked
// about, not set.
func (e *envReader) read(s *Set, text string, sentence bool, q finding.Quote, host string) bool {
	pending := e.pending
	e.pending = ""
	trimmed := strings.TrimSpace(text)
	if pending != "" {
		if v, ok := strings.CutPrefix(trimmed, "value:"); ok {
			s.setEnv(pending, strings.Trim(strings.TrimSpace(v), `"'`), q, host)
			return true
		}
	}
	if strings.HasPrefix(trimmed, "#") && !strings.HasPrefix(trimmed, "#SBATCH") && !strings.HasPrefix(trimmed, "#PBS") {
		return false // switched off
	}
	if m := e.logged.FindStringSubmatch(text); m != nil {
		s.setEnv(m[1], strings.TrimSuffix(m[2], "."), q, host)
		return true
	}
	if m := e.named.FindStringSubmatch(text); m != nil {
		e.pending = m[1]
		return true
	}
	took := false
	for _, m := range e.assigned.FindAllStringSubmatchIndex(text, 32) {
		if sentence && m[0] > len(text)-len(strings.TrimLeft(text, " \t-*\"'")) && !command(text) {
			continue
		}
		if m[5] == m[4] || sentence && strings.Contains(text[m[1]:], "workaround") {
			continue
		}
		s.setEnv(text[m[2]:m[3]], strings.TrimSuffix(text[m[4]:m[5]], `\`), q, host)
		took = true
	}
	return took
}

// command reports a line that starts a program or exports a variable.
func command(text string) bool {
	for _, w := range []string{"export ", "mpirun ", "mpiexec ", "srun ", "torchrun ", "docker run", "podman run", " -x ", " -e ", "--env", "ENV ", "os.environ", "deepspeed ", "python ", "accelerate ", "{"} {
		if strings.Contains(text, w) {
			return true
		}
	}
	return false
}
