package evidence

import (
	"regexp"
	"slices"
	"strings"

	"busbar.dev/finding"
	"busbar.dev/input/nccllog"
)

// envPatterns are how settings are written: in environments, scripts, manifests
// and in what NCCL says it took from them.
type envPatterns struct {
	assigned, logged, named *regexp.Regexp
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

// read finds the settings of a line. One in the middle of a sentence was talked
// about, not set.
func (e *envPatterns) read(h *hit, l *nccllog.Line, text string, sentence bool) {
	trimmed := strings.TrimSpace(text)
	h.value, h.valued = strings.CutPrefix(trimmed, "value:")
	h.value = strings.Trim(strings.TrimSpace(h.value), `"'`)
	if strings.HasPrefix(trimmed, "#") && !strings.HasPrefix(trimmed, "#SBATCH") && !strings.HasPrefix(trimmed, "#PBS") {
		return // switched off
	}
	if name, value, ok := e.took(l, text); ok {
		h.args = []string{name, strings.TrimSuffix(value, ".")}
		return
	}
	if m := e.named.FindStringSubmatch(trimmed); m != nil {
		h.named = m[1]
		return
	}
	for _, m := range e.assigned.FindAllStringSubmatchIndex(text, 32) {
		if sentence && m[0] > len(text)-len(strings.TrimLeft(text, " \t-*\"'")) && !command(text) {
			continue
		}
		if m[5] == m[4] || sentence && strings.Contains(text[m[1]:], "workaround") {
			continue
		}
		h.args = append(h.args, text[m[2]:m[3]], strings.TrimSuffix(text[m[4]:m[5]], `\`))
	}
}

// took is the setting that NCCL says it took.
func (e *envPatterns) took(l *nccllog.Line, text string) (name, value string, ok bool) {
	if len(l.Records) == 1 {
		m, _ := l.Records[0].Message.(*nccllog.Setting)
		if m != nil && m.Value != "" && slices.ContainsFunc(envPrefixes, func(p string) bool { return strings.HasPrefix(m.Name, p) }) {
			return m.Name, m.Value, true
		}
	}
	if strings.Contains(text, " to ") {
		if m := e.logged.FindStringSubmatch(text); m != nil {
			return m[1], m[2], true
		}
	}
	return "", "", false
}

// settings files the settings of a line; that a manifest named before gets its value.
func (r *Reader) settings(h *hit, q finding.Quote, host string) bool {
	pending := r.pending
	r.pending = h.named
	if pending != "" && h.valued {
		r.pending = ""
		r.set.setEnv(pending, h.value, q, host)
		return true
	}
	for i := 0; i+1 < len(h.args); i += 2 {
		r.set.setEnv(h.args[i], h.args[i+1], q, host)
	}
	return h.named != "" || len(h.args) > 0
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
