//go:build unix

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/goccy/go-yaml"

	"busbar.dev/internal/test/eventually"
	"busbar.dev/internal/test/freeport"
	"busbar.dev/launch"
)

// pod is what a manifest starts: containers with their commands, as a kubelet reads them.
type pod struct {
	Init []podContainer `yaml:"initContainers"`
	Run  []podContainer `yaml:"containers"`
}

type podContainer struct {
	Command []string `yaml:"command"`
	Args    []string `yaml:"args"`
	Env     []struct {
		Name  string `yaml:"name"`
		Value string `yaml:"value"`
	} `yaml:"env"`
}

type podJob struct {
	Spec struct {
		Completions int `yaml:"completions"`
		Template    struct {
			Spec pod `yaml:"spec"`
		} `yaml:"template"`
	} `yaml:"spec"`
}

// command is a container's as a kubelet expands it: $(VAR) is a variable that is known, $$ a dollar sign.
func (c *podContainer) command(t *testing.T, file string, index, port int, more ...string) *exec.Cmd {
	var words []string
	for _, w := range slices.Concat(c.Command, c.Args) {
		w = strings.ReplaceAll(w, "$(JOB_COMPLETION_INDEX)", fmt.Sprint(index))
		words = append(words, strings.ReplaceAll(w, "$$", "$"))
	}
	// Six processes that add 16 MiB up may take long on a busy machine.
	ctx, cancel := context.WithTimeout(t.Context(), 2*eventually.Limit)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, words[0], words[1:]...)
	cmd.Env = append(withPath(file, more...), fmt.Sprintf("JOB_COMPLETION_INDEX=%d", index))
	for _, e := range c.Env {
		switch e.Name { // names of pods do not resolve here, and ports are others'
		case "MASTER_ADDR":
			e.Value = "127.0.0.1"
		case "MASTER_PORT":
			e.Value = fmt.Sprint(port)
		}
		if e.Value != "" {
			cmd.Env = append(cmd.Env, e.Name+"="+e.Value)
		}
	}
	if words[0] == "torchrun" { // looked up before the environment counts
		cmd.Path = filepath.Join(filepath.Dir(file), "torchrun")
		cmd.Err = nil
	}
	if words[0] == "busbar" {
		cmd.Path, cmd.Err = file, nil
	}
	return cmd
}

// The pods of both manifests, started as a kubelet would: the preflight's ranks find each other and add up right, and
// torchrun gets every node's number once, the plan's, with the program's words as they were.
func TestPods(t *testing.T) {
	t.Parallel()
	file := built(t)
	p := &launch.Plan{
		Version: launch.Version, Made: "a test", Cluster: "made up", NCCL: "2.30.7", Job: launch.Job{Model: "made-up"},
		Leaves: []int{1, 2},
		Nodes:  []launch.Nodes{{Hosts: "a1,b1,b2", GPUs: []int{0, 1}}},
		Types:  []launch.Type{{Name: "two", GPUs: []launch.GPU{{Name: "gpu0", NUMA: -1}, {Name: "gpu1", NUMA: -1}}}},
	}
	files, _, err := p.Files("/plan")
	if err != nil {
		t.Fatal(err)
	}
	fake := filepath.Join(t.TempDir(), "torchrun")
	if err := os.WriteFile(fake, []byte("#!/bin/sh\nprintf '<%s>' \"$@\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"job.yaml", "jobset.yaml"} {
		text := files[slices.IndexFunc(files, func(f launch.File) bool { return f.Name == name })].Text
		jobs := jobsOf(t, name, text)
		port := freeport.Of(t)
		var wg sync.WaitGroup
		var mu sync.Mutex
		var nodes []string
		for _, j := range jobs {
			spec := j.Spec.Template.Spec
			spec.Run[0].Args[len(spec.Run[0].Args)-1] = `it's "a b"`
			for i := range j.Spec.Completions {
				wg.Go(func() {
					var out bytes.Buffer
					first := spec.Init[0].command(t, file, i, port)
					first.Stdout, first.Stderr = &out, &out
					if err := alone(first).Run(); err != nil {
						t.Errorf("%s: preflight of pod %d: %v\n%s", name, i, err, out.String())
					}
					cmd := spec.Run[0].command(t, fake, i, port)
					got, err := alone(cmd).CombinedOutput()
					if err != nil || !strings.HasSuffix(string(got), `<--><it's "a b">`) {
						t.Errorf("%s: pod %d: %v: %s", name, i, err, got)
					}
					for _, w := range strings.Split(string(got), "><") {
						if n, ok := strings.CutPrefix(w, "--node_rank="); ok {
							mu.Lock()
							nodes = append(nodes, n)
							mu.Unlock()
						}
					}
				})
			}
		}
		wg.Wait()
		if slices.Sort(nodes); !slices.Equal(nodes, []string{"0", "1", "2"}) {
			t.Errorf("%s: nodes %v", name, nodes)
		}
	}
}

// jobsOf are the jobs of a manifest.
func jobsOf(t *testing.T, name, text string) []podJob {
	t.Helper()
	docs := strings.Split(text, "\n---\n")
	last := []byte(docs[len(docs)-1])
	if name == "job.yaml" {
		var j podJob
		if err := yaml.Unmarshal(last, &j); err != nil {
			t.Fatal(err)
		}
		return []podJob{j}
	}
	var set struct {
		Spec struct {
			Jobs []struct {
				Template podJob `yaml:"template"`
			} `yaml:"replicatedJobs"`
		} `yaml:"spec"`
	}
	if err := yaml.Unmarshal(last, &set); err != nil {
		t.Fatal(err)
	}
	var list []podJob
	for _, j := range set.Spec.Jobs {
		list = append(list, j.Template)
	}
	return list
}
