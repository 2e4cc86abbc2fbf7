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
	assigned, logged, named, proposed *regexp.Regexp
}

// envPrefixes are the beginnings of names of settings that matter.
var envPrefixes = strings.Fields("NCCL_ RCCL_ UCX_ GLOO_ FI_ OFI_NCCL_ OMPI_ MASTER_ TORCH_NCCL_ CUDA_ HSA_ MC_ " +
	"NVSHMEM_ " +
	"OMP_ PYTORCH_ TORCH_")

// envNames are parts of all names that patterns take: without one, none of the patterns need be tried.
var envNames = append([]string{"WORLD_SIZE", "RANK"}, envPrefixes...)

func newEnvPatterns() *envPatterns {
	name := `((?:` + strings.Join(envPrefixes, "|") + `)[A-Z0-9_]+|WORLD_SIZE|RANK|LOCAL_RANK)`
	return &envPatterns{
		assigned: regexp.MustCompile(`\b` + name + `["'\]]{0,3}\s*[=:]\s*["']?([^\s"',;})]*)`),
		logged:   regexp.MustCompile(name + ` (?:set by environment|set|environment variable) to ([^\s]+)`),
		named:    regexp.MustCompile(`^-?\s*name:\s*["']?` + name + `["']?\s*$`),
		proposed: regexp.MustCompile(
			`(?i)\b(?:please|try|consider|should|must)(?: (?:set|setting|use|using|export|add))?\W+` +
				name + `|\bset\W+` + name + `\S*\s+to\s`),
	}
}

// envWords are the words by which lines with settings are found.
const envWords = "nccl_|ucx_|gloo_|fi_|master_|cuda_|world_size|ompi_|hsa_|mc_mtu|value:"

// find is where the settings of a text are: begin and end of a name and of its value by turns; of a name alone where a
// manifest gives it a value on the next line. One in the middle of a sentence was talked about, not set, and one that a
// program or somebody asks for is not set yet.
func (e *envPatterns) find(text string, sentence bool) (at []int) {
	trimmed := strings.TrimSpace(text)
	if switchedOff(trimmed) || !slices.ContainsFunc(envNames, func(n string) bool { return strings.Contains(text, n) }) {
		return nil
	}
	if strings.Contains(text, " to ") {
		if m := e.logged.FindStringSubmatchIndex(text); m != nil {
			return []int{m[2], m[3], m[4], m[4] + len(strings.TrimSuffix(text[m[4]:m[5]], "."))}
		}
	}
	if m := e.named.FindStringSubmatchIndex(trimmed); m != nil {
		from := strings.Index(text, trimmed)
		return []int{from + m[2], from + m[3]}
	}
	asked := e.proposed.FindStringIndex(text)
	for _, m := range e.assigned.FindAllStringSubmatchIndex(text, 32) {
		if asked != nil && m[0] > asked[0] && !strings.Contains(text[asked[0]:m[0]], ". ") {
			continue
		}
		if sentence && m[0] > len(text)-len(strings.TrimLeft(text, " \t-*\"'")) && !command(text) {
			continue
		}
		if m[5] == m[4] || sentence && strings.Contains(text[m[1]:], "workaround") {
			continue
		}
		at = append(at, m[2], m[3], m[4], m[4]+len(strings.TrimSuffix(text[m[4]:m[5]], `\`)))
	}
	return at
}

// switchedOff reports a setting that is a comment.
func switchedOff(trimmed string) bool {
	return strings.HasPrefix(trimmed, "#") && !strings.HasPrefix(trimmed, "#SBATCH") && !strings.HasPrefix(trimmed, "#PBS")
}

// read takes the settings of a line: those that NCCL says it took, or that were found.
func (e *envPatterns) read(h *hit, l *nccllog.Line, text string, at []int) {
	trimmed := strings.TrimSpace(text)
	h.value, h.valued = strings.CutPrefix(trimmed, "value:")
	h.value = strings.Trim(strings.TrimSpace(h.value), `"'`)
	if switchedOff(trimmed) {
		return
	}
	if len(l.Records) == 1 {
		m, _ := l.Records[0].Message.(*nccllog.Setting)
		if m != nil && m.Value != "" &&
			slices.ContainsFunc(envPrefixes, func(p string) bool { return strings.HasPrefix(m.Name, p) }) {
			h.args = []string{m.Name, strings.TrimSuffix(m.Value, ".")}
			return
		}
	}
	if len(at) == 2 {
		h.named = text[at[0]:at[1]]
		return
	}
	for ; len(at) > 0; at = at[4:] {
		h.args = append(h.args, text[at[0]:at[1]], text[at[2]:at[3]])
	}
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

// starters are in lines that start a program or export a variable.
var starters = strings.Split("export ,mpirun ,mpiexec ,srun ,torchrun ,docker run,podman run, -x , -e ,--env,ENV ,"+
	"os.environ,deepspeed ,python ,accelerate ,{", ",")

func command(text string) bool { return anyOf(text, starters) }
