package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"busbar.dev/input/procs"
	"busbar.dev/internal/failure"
	"busbar.dev/internal/kube"
	"busbar.dev/internal/osdep"
	"busbar.dev/query"
	"busbar.dev/report"
)

// hangCmd says which ranks hold a job up.
type hangCmd struct {
	common
	settings
	query.Hang
}

// Run reads, asks and reports.
func (c *hangCmd) Run(e *env) error {
	q := e.query(c.common)
	q.JobHosts, q.Trigger, q.Pods = slurmHosts, triggerDumps, kubePods
	q.Processes = func(pid int) ([]procs.Process, error) { return procs.Find(os.DirFS("/proc"), pid) }
	doc, err := c.Hang.Run(e.ctx, q)
	if err != nil {
		return err
	}
	err = show(e, c.common, doc, report.Hang)
	if err == nil && doc.Undecided() {
		return failure.Cannot(errors.New("no verdict: " + doc.Title()))
	}
	return wrong(doc, err)
}

// slurmHosts asks Slurm for the hosts of a job.
func slurmHosts(ctx context.Context, job string) (string, error) {
	if strings.HasPrefix(job, "-") {
		return "", fmt.Errorf("--job %s: expected the number of a job", job)
	}
	ctx, stop := context.WithTimeout(ctx, 10*time.Second)
	defer stop()
	out, err := exec.CommandContext(ctx, "squeue", "--noheader", "--states=all", "--format=%N", "--jobs="+job).Output()
	hosts := strings.TrimSpace(string(out))
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return "", failure.Cannot(errors.New("--job needs Slurm's squeue, which is not here; give the hosts with --hosts"))
	case err != nil:
		said := err.Error()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && len(exit.Stderr) > 0 {
			said = strings.TrimSpace(string(exit.Stderr))
		}
		return "", failure.Cannot(fmt.Errorf("squeue --jobs=%s: %s; give the hosts with --hosts", job, said))
	case hosts == "":
		return "", fmt.Errorf("job %s has no hosts: it does not run", job)
	}
	return strings.Join(strings.Fields(hosts), ","), nil
}

// kubePods asks the API server of the cluster that there are credentials for.
func kubePods(ctx context.Context, q kube.Question) ([]kube.Pod, error) {
	c, err := kube.Load(kube.Here{Getenv: os.Getenv, ReadFile: os.ReadFile})
	if err != nil {
		return nil, err
	}
	return c.Pods(ctx, q)
}

// triggerDumps writes to the recorder's pipes. A pipe that nobody reads is left alone.
func triggerDumps(prefix string) (int, error) {
	pipes, err := filepath.Glob(strings.NewReplacer("*", `\*`, "?", `\?`, "[", `\[`).Replace(prefix) + "*.pipe")
	if err != nil {
		return 0, err
	}
	told := 0
	for _, name := range pipes {
		// Everybody may write to the folder where pipes usually lie: a link there could lead to any file of the user's.
		f, err := os.OpenFile(name, os.O_WRONLY|syscall.O_NONBLOCK|osdep.NoFollow, 0)
		if err != nil {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode()&os.ModeNamedPipe != 0 {
			if _, err := f.WriteString("1\n"); err == nil {
				told++
			}
		}
		f.Close()
	}
	if told == 0 {
		return 0,
			failure.Cannot(fmt.Errorf("no rank reads a pipe %s*.pipe; start the job with TORCH_NCCL_DEBUG_INFO_PIPE_FILE=%s",
				prefix, prefix))
	}
	return told, nil
}
