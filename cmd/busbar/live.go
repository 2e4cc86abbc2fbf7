package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"busbar/cluster"
	"busbar/input"
	"busbar/input/sysfs"
)

// thisMachine reads /sys and asks the GPU tools that are installed.
func (e *env) thisMachine(o common) ([]*cluster.Fragment, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, cannotError{err}
	}
	f, err := sysfs.Read(host, os.DirFS("/"))
	if err != nil {
		return nil, cannotError{fmt.Errorf("this machine: %w", err)}
	}
	f.Source = "this machine"
	frags := []*cluster.Fragment{f}
	for _, tool := range [][]string{
		{"nvidia-smi", "-q", "-x"},
		{"nvidia-smi", "topo", "-m"},
		{"nvidia-smi", "topo", "-p2p", "r"},
		{"nvidia-smi", "nvlink", "--status"},
		{"rocm-smi", "--showtopo"},
	} {
		frags = append(frags, e.ask(host, tool, o, f)...)
	}
	return frags, nil
}

// toolTime bounds a child process; nvidia-smi on a sick driver can hang for ever.
const toolTime = 20 * time.Second

// ask runs an installed tool and reads what it prints. A tool that is not there
// is no news; one that fails is a warning.
func (e *env) ask(host string, tool []string, o common, to *cluster.Fragment) []*cluster.Fragment {
	path, err := exec.LookPath(tool[0])
	if err != nil {
		return nil
	}
	name := strings.Join(tool, " ")
	done := e.progress(o, "asking "+name)
	defer done()
	ctx, cancel := context.WithTimeout(e.ctx, toolTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, tool[1:]...).Output()
	if err != nil {
		to.Warnings = append(to.Warnings, cluster.Warning{Source: name, Text: fmt.Sprintf("gave no answer: %v", err)})
		return nil
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil // nvidia-smi nvlink on a GPU without NVLink
	}
	frags, err := input.Read(name, bytes.NewReader(out))
	if err != nil {
		to.Warnings = append(to.Warnings, cluster.Warning{Source: name, Text: err.Error()})
		return nil
	}
	for _, f := range frags {
		if len(f.Hosts) == 1 {
			f.Hosts[0].Name = host
		}
	}
	return frags
}
