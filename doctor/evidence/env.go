package evidence

import (
	"regexp"
	"slices"
	"strings"
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

// envPrefixes are the beginnings of names of settings that matter.
var envPrefixes = []string{"NCCL_", "RCCL_", "UCX_", "GLOO_", "FI_", "OFI_NCCL_", "OMPI_", "MASTER_", "TORCH_NCCL_", "CUDA_", "HSA_", "MC_", "NVSHMEM_", "OMP_", "PYTORCH_", "TORCH_"}

func newEnvPatterns() *envPatterns {
	name := `((?:` + strings.Join(envPrefixes, "|") + `)[A-Z0-9_]+|WORLD_SIZE|RANK|LOCAL_RANK)`
	return &envPatterns{
		assigned: regexp.MustCompile(`\b` + name + `["'\]]{0,3}\s*[=:]\s*["']?([^\s"',;})]*)`),
		logged:   regexp.MustCompile(name + ` (?:set by environment|set|environment variable) to ([^\s]+)`),
		named:    regexp.MustCompile(`^-?\s*name:\s*["']?` + name + `["']?\s*$`),
	}
}

// envWords are the words by which lines with settings are found.
const envWords = "nccl_|ucx_|gloo_|fi_|master_|cuda_|world_size|ompi_|hsa_|mc_mtu|value:"

// read files the settings of a line. One in the middle of a sentence was talked
// about, not set.
func (e *envReader) read(s *Set, v *view) bool {
	text, sentence, q, host := v.text, v.sentence, v.quote, v.host
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
	if name, value, ok := e.took(v); ok {
		s.setEnv(name, strings.TrimSuffix(value, "."), q, host)
		return true
	}
	if m := e.named.FindStringSubmatch(trimmed); m != nil {
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

// took is the setting that NCCL says it took.
func (e *envReader) took(v *view) (name, value string, ok bool) {
	if m := v.setting; m != nil && m.Value != "" && slices.ContainsFunc(envPrefixes, func(p string) bool { return strings.HasPrefix(m.Name, p) }) {
		return m.Name, m.Value, true
	}
	if strings.Contains(v.text, " to ") {
		if m := e.logged.FindStringSubmatch(v.text); m != nil {
			return m[1], m[2], true
		}
	}
	return "", "", false
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
