// Package procs finds the ranks of a training job among the processes of a machine: how each of them is, and where it
// writes its log and the dumps of its recorder. It reads /proc alone, and of a process only what its own user may read.
package procs

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"busbar.dev/input/internal/num"
	"busbar.dev/internal/lazyre"
)

// Process is a rank of a job.
type Process struct {
	PID, Rank, World int
	State            byte      // as the kernel names it: R, S, D (waits for a device), T (stopped), t (traced), Z (ended)
	Waits            Wait      // what its first thread is in
	Code             int       // of one that ended: its exit code, or minus the signal
	Started          time.Time // zero where that is not known
	Job              string    // the address where its ranks meet
	RAS              string    // where NCCL's RAS service listens
	Dump             string    // the file that its recorder writes
	Pipe             string    // what its recorder is told by to write it; "" where the job has none
	Rings            string    // the folder of the profiler plugin's rings; "" where the job has none
	Logs             []string  // the files of its output and of NCCL's
}

// Bounds of what is read.
const (
	maxProcesses = 1 << 17
	maxEnviron   = 1 << 20
)

// Find lists the ranks of the job that a process belongs to: those of this machine. proc is /proc.
func Find(proc fs.FS, pid int) ([]Process, error) {
	own, ok := read(proc, pid)
	if _, err := fs.Stat(proc, strconv.Itoa(pid)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("process %d is not here", pid)
	}
	if !ok {
		return nil, fmt.Errorf("process %d: its environment has no RANK, WORLD_SIZE and MASTER_ADDR, or is another user's; "+
			"expected a rank of a job that torchrun, srun or mpirun started", pid)
	}
	entries, err := fs.ReadDir(proc, ".")
	if err != nil {
		return nil, err
	}
	found := map[int]Process{}
	parents := map[int]int{}
	for _, e := range entries[:min(len(entries), maxProcesses)] {
		n, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if p, ok := read(proc, n); ok && p.Job == own.Job && p.World == own.World {
			found[n], parents[n] = p.Process, p.parent
		}
	}
	var list []Process
	for n, p := range found {
		// a data loader's workers have their rank's environment, and so has a shell that started it: the rank is the one that
		// listens
		if above, ok := found[parents[n]]; ok && above.Rank == p.Rank && !shell(proc, above.PID) {
			continue
		}
		if !shell(proc, n) {
			list = append(list, p)
		}
	}
	slices.SortFunc(list, func(a, b Process) int { return cmp.Or(a.Rank-b.Rank, a.PID-b.PID) })
	return slices.CompactFunc(list, func(a, b Process) bool { return a.Rank == b.Rank }), nil
}

type process struct {
	Process

	parent int
}

// read reads one process; ok is false for one that is no rank.
func read(proc fs.FS, pid int) (process, bool) {
	dir := strconv.Itoa(pid)
	env := environ(proc, dir)
	rank, err := strconv.Atoi(env["RANK"])
	world, err2 := strconv.Atoi(env["WORLD_SIZE"])
	if err != nil || err2 != nil || rank < 0 || rank >= world || env["MASTER_ADDR"] == "" {
		return process{}, false
	}
	p := process{Process: Process{PID: pid, Rank: rank, World: world, Job: env["MASTER_ADDR"] + ":" + env["MASTER_PORT"]}}
	if !p.stat(proc, dir) {
		return process{}, false
	}
	p.RAS = cmp.Or(env["NCCL_RAS_ADDR"], "localhost:28028")
	p.Dump = cmp.Or(env["TORCH_FR_DUMP_TEMP_FILE"], env["TORCH_NCCL_DEBUG_INFO_TEMP_FILE"], "/tmp/nccl_trace_rank_") +
		env["RANK"]
	if pipe := env["TORCH_NCCL_DEBUG_INFO_PIPE_FILE"]; pipe != "" {
		p.Pipe = pipe + env["RANK"] + ".pipe"
	}
	if strings.Contains(env["NCCL_PROFILER_PLUGIN"], "busbar") {
		p.Rings = cmp.Or(env["BUSBAR_PROFILE_DIR"], "/dev/shm")
	}
	p.Logs = logs(proc, dir, env["NCCL_DEBUG_FILE"])
	p.Waits = waits(proc, dir, p.State)
	return p, true
}

// environ is the environment that a process was started with; nil where it may not be read.
func environ(proc fs.FS, dir string) map[string]string {
	f, err := proc.Open(dir + "/environ")
	if err != nil {
		return nil
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxEnviron))
	if err != nil {
		return nil
	}
	env := map[string]string{}
	for part := range bytes.SplitSeq(data, []byte{0}) {
		if name, value, ok := strings.Cut(string(part), "="); ok {
			env[name] = value
		}
	}
	return env
}

// stat reads a process's state, parent, start and exit code (proc_pid_stat(5)).
func (p *process) stat(proc fs.FS, dir string) bool {
	data, err := fs.ReadFile(proc, dir+"/stat")
	if err != nil {
		return false
	}
	end := bytes.LastIndexByte(data, ')') // a name may have blanks and parentheses
	fields := strings.Fields(string(data[end+1:]))
	if len(fields) < 20 {
		return false
	}
	p.State = fields[0][0]
	p.parent = num.Int(fields[1])
	if ticks, err := strconv.ParseInt(fields[19], 10, 64); err == nil && ticks >= 0 && ticks < 1<<50 {
		// Linux counts a hundred ticks a second for programs, from the machine's start.
		data, _ := fs.ReadFile(proc, "stat")
		if m := booted.FindSubmatch(data); m != nil {
			n, _ := strconv.ParseInt(string(m[1]), 10, 64)
			p.Started = time.Unix(n+ticks/100, 0)
		}
	}
	if p.State == 'Z' && len(fields) > 49 {
		if code, err := strconv.Atoi(fields[49]); err == nil {
			if p.Code = code >> 8 & 0xff; code&0x7f != 0 {
				p.Code = -(code & 0x7f)
			}
		}
	}
	return true
}

var booted = lazyre.New(`(?m)^btime (\d{1,15})$`)

// logs are the files that a process writes its output to, and NCCL's own.
func logs(proc fs.FS, dir, nccl string) []string {
	var list []string
	for _, fd := range []string{"1", "2"} {
		name, err := fs.ReadLink(proc, path.Join(dir, "fd", fd))
		if err == nil && strings.HasPrefix(name, "/") && !strings.HasPrefix(name, "/dev/") &&
			!strings.HasSuffix(name, " (deleted)") {
			list = append(list, name)
		}
	}
	if strings.HasPrefix(nccl, "/") && !strings.HasPrefix(nccl, "/dev/") {
		host, _ := fs.ReadFile(proc, "sys/kernel/hostname")
		list = append(list, strings.NewReplacer("%p", dir, "%h", strings.TrimSpace(string(host)), "%%", "%").Replace(nccl))
	}
	slices.Sort(list)
	return slices.Compact(list)
}

// shell reports a process that only started a rank.
func shell(proc fs.FS, pid int) bool {
	data, _ := fs.ReadFile(proc, strconv.Itoa(pid)+"/comm")
	return slices.Contains(strings.Fields("sh bash dash ash zsh busbar numactl env timeout nice"),
		strings.TrimSpace(string(data)))
}
