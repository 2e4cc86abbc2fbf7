package query

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/workload"
)

// readFramework is the framework of a word, none where none is named, and the kernels, none where they are left to it. The kinds of
// kernels are taken as a framework too, as they were before frameworks had names: then any framework will do.
func readFramework(env *Env, framework, kernels string) (*workload.Framework, workload.Kernels, error) {
	switch workload.Kernels(framework) {
	case "":
		return nil, workload.Kernels(kernels), nil
	case workload.Eager, workload.Compiled, workload.Fused:
		if kernels != "" && kernels != framework {
			return nil, "", fmt.Errorf("--framework %s and --kernels %s; expected one of them", framework, kernels)
		}
		return nil, workload.Kernels(framework), nil
	}
	f, err := workload.ParseFramework(framework)
	if err != nil {
		return nil, "", fmt.Errorf("--%w", err)
	}
	if f.Newer != "" {
		env.note(fmt.Sprintf("--framework %s: %s is newer than what is known of %s; %s is taken", framework, f.Newer, f.Name, f.Release))
	}
	if name, _, _ := strings.Cut(f.ID, "@"); !strings.Contains(strings.ToLower(framework), name) && !configured(frameworkName(framework)) {
		env.note(fmt.Sprintf("--framework %.60s is taken as %s", framework, name))
	}
	return f, workload.Kernels(kernels), nil
}

// readPrecision is that of a word, or the framework's own.
func readPrecision(word string, f *workload.Framework) workload.Precision {
	switch {
	case word != "":
		return workload.Precision(word)
	case f != nil:
		return f.DefaultPrecision()
	}
	return workload.BF16
}

// adopt gives a job the framework's style on GPUs of a compute capability, and what it divides among ranks where the
// words of --parallel do not say.
func adopt(f *workload.Framework, j *workload.Job, parallel string, sm int) {
	if f == nil {
		return
	}
	f.Adopt(j, sm)
	said := map[string]bool{}
	for _, part := range strings.Split(parallel, ",") {
		key, _, _ := strings.Cut(part, "=")
		said[strings.ToLower(strings.TrimSpace(key))] = true
	}
	f.Fill(&j.Split, said)
	// The Trainer shards nothing unless FSDP or DeepSpeed is configured, and recipes for adapters do not: what is frozen needs no optimizer.
	if name, _, _ := strings.Cut(f.ID, "@"); name == "hf" && !said["zero"] && j.LoRA.Rank > 0 && slices.Contains(f.ZeRO, 0) {
		j.Split.ZeRO = 0
	}
}

// frameworkName is a framework's word without its release.
func frameworkName(word string) string {
	name, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(word)), "@")
	return name
}

// configured reports names of launchers that run DDP with eager kernels unless they are told otherwise.
func configured(name string) bool { return name == "lightning" || name == "accelerate" }

// takenAs says where the name of a framework is taken for sharding that its programs do only where they are configured so; nil where it is not.
func takenAs(word string, f *workload.Framework, parallel string, lora bool) []string {
	if f == nil || strings.Contains(parallel, "zero") {
		return nil
	}
	switch name := frameworkName(word); {
	case f.Name == "hf" && !lora && f.DefaultZeRO(workload.Split{DP: 2}) == 3:
		return []string{fmt.Sprintf("--framework %s is taken with FSDP (zero=3); unless it is configured so it runs DDP: --parallel zero=0", word)}
	case configured(name):
		return []string{fmt.Sprintf("--framework %s is taken as %s with %s kernels; unless it is configured so it runs DDP with eager kernels: --framework ddp", word, f.Title, f.Kernels)}
	}
	return nil
}
