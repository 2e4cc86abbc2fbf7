// Package live reads the machine that the program runs on: its /sys and /proc, and the tools for GPUs that are
// installed.
//
// It is the only reader that starts programs. It is not stable; what it gives is a fragment like any other reader's.
package live

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	"busbar.dev/cluster"
	"busbar.dev/input"
	"busbar.dev/input/sysfs"
	"busbar.dev/internal/failure"
)

// tools are asked one after the other. Those that are not installed are passed over.
var tools = []string{
	"nvidia-smi -q -x", "nvidia-smi topo -m", "nvidia-smi topo -p2p r", "nvidia-smi nvlink --status",
	"rocm-smi --showtopo",
}

// Read reads this machine. progress is called with what is being done, and with nothing at the end; nil is nobody.
func Read(ctx context.Context, progress func(text string)) ([]*cluster.Fragment, error) {
	host, err := os.Hostname()
	if err != nil {
		return nil, failure.Cannot(err)
	}
	f, err := sysfs.Read(host, os.DirFS("/"))
	if err != nil {
		return nil, failure.Cannot(fmt.Errorf("this machine: %w", err))
	}
	f.Source = "this machine"
	frags := []*cluster.Fragment{f}
	hung := map[string]bool{} // tools that gave no answer are not asked again
	for _, tool := range tools {
		program, _, _ := strings.Cut(tool, " ")
		if hung[program] {
			continue
		}
		more, ok := ask(ctx, host, tool, progress, f)
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		frags = append(frags, more...)
		hung[program] = !ok
	}
	return frags, nil
}

// toolTime bounds a child process; nvidia-smi on a sick driver can hang for ever.
const toolTime = 20 * time.Second

// ask runs an installed tool and reads what it prints. One that fails is a warning on the machine's fragment. ok is
// false when it hung. One that ends because we were told to stop is the caller's to notice.
func ask(ctx context.Context, host, name string, progress func(string),
	to *cluster.Fragment,
) (frags []*cluster.Fragment, ok bool) {
	tool := strings.Fields(name)
	path, err := exec.LookPath(tool[0])
	if err != nil {
		return nil, true
	}
	if progress != nil {
		progress("asking " + name)
		defer progress("")
	}
	within, cancel := context.WithTimeout(ctx, toolTime)
	defer cancel()
	out := &limited{}
	cmd := exec.CommandContext(within, path, tool[1:]...)
	cmd.Stdout = out
	cmd.WaitDelay = 2 * time.Second // a child of the tool may keep its output open
	warn := func(format string, args ...any) {
		to.Warnings = append(to.Warnings, cluster.Warning{Source: name, Text: fmt.Sprintf(format, args...)})
	}
	if err := cmd.Run(); err != nil {
		switch {
		case ctx.Err() != nil:
			return nil, false
		case within.Err() != nil:
			warn("gave no answer within %v and was ended; a driver that hangs shows like this", toolTime)
			return nil, false
		}
		warn("failed: %v", err)
		return nil, true
	}
	if len(bytes.TrimSpace(out.data)) == 0 {
		return nil, true // nvidia-smi nvlink on a GPU without NVLink
	}
	frags, err = input.Read(name, bytes.NewReader(out.data))
	if err != nil {
		warn("prints nothing that can be used: %v", err)
		return nil, true
	}
	for _, f := range frags {
		if len(f.Hosts) == 1 {
			f.Hosts[0].Name = host
		}
	}
	return frags, true
}

// maxAnswer is more than any of these tools prints about one machine.
const maxAnswer = 16 << 20

// limited keeps the beginning of what is written and drops the rest.
type limited struct{ data []byte }

func (l *limited) Write(p []byte) (int, error) {
	if room := maxAnswer - len(l.data); room > 0 {
		l.data = append(l.data, p[:min(len(p), room)]...)
	}
	return len(p), nil
}
