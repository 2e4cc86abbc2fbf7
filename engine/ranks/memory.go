package ranks

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"busbar.dev/internal/failure"
	"busbar.dev/unit"
)

// rankOverhead is what a rank takes beside its buffers: the program itself, and what it reads
// and sends through.
const rankOverhead = 8 * unit.MiB

// room is what a host can give to new programs, and who sets that bound.
type room struct {
	free unit.Bytes
	of   string
}

// fits refuses ranks that would push each other out of a host's memory, before they begin to.
// Shared memory is anonymous and counts like any other; what /dev/shm has free is no bound.
func fits(ranks int, each unit.Bytes, advice string) error {
	r, ok := roomIn(os.DirFS("/"))
	if !ok {
		return nil
	}
	return r.holds(ranks, each, advice)
}

func (r room) holds(ranks int, each unit.Bytes, advice string) error {
	usable := r.free / 10 * 9
	if float64(each+rankOverhead)*float64(ranks) <= float64(usable) { // floats: products may be beyond all numbers
		return nil
	}
	what := "1 rank needs"
	if ranks > 1 {
		what = fmt.Sprintf("%d ranks of %s need", ranks, gibi(float64(each+rankOverhead)))
	}
	return failure.Cannot(fmt.Errorf("not enough memory: %s %s, and %s has %s free, a tenth of which stays; take %s", what,
		gibi(float64(each+rankOverhead)*float64(ranks)), r.of, gibi(float64(r.free)), advice))
}

// gibi is one unit for figures that are compared.
func gibi(bytes float64) string { return fmt.Sprintf("%.2f GiB", bytes/float64(unit.GiB)) }

// roomIn reads what a machine says: its free memory, and what the limits of the control groups
// of this process leave of it.
func roomIn(root fs.FS) (r room, ok bool) {
	if kib, found := field(root, "proc/meminfo", "MemAvailable:"); found {
		r, ok = room{unit.Bytes(kib) * unit.KiB, "this host"}, true
	}
	groups, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return r, ok
	}
	for line := range strings.Lines(string(groups)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 {
			continue
		}
		f := groupFiles{"sys/fs/cgroup", "memory.max", "memory.current", "inactive_file"}
		switch {
		case parts[1] == "memory":
			f = groupFiles{"sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"}
		case parts[1] != "":
			continue
		}
		// A limit holds for all below it. Within a container the path may be that of the host
		// outside, of which only the top is seen.
		for at := path.Clean("/" + parts[2]); ; at = path.Dir(at) {
			if left, found := f.left(root, strings.TrimPrefix(at, "/")); found && (!ok || left < r.free) {
				r, ok = room{left, "the control group of this process"}, true
			}
			if at == "/" {
				break
			}
		}
	}
	return r, ok
}

// groupFiles are where a version of control groups keeps its figures.
type groupFiles struct{ top, limit, used, cache string }

// left is what the limit of a group leaves, where it has one: files that were only read do not
// count, for they give way.
func (f groupFiles) left(root fs.FS, group string) (unit.Bytes, bool) {
	dir := path.Join(f.top, group)
	limit, ok := number(root, path.Join(dir, f.limit))
	if !ok || limit > 1<<60 { // the first version writes a great number for none
		return 0, false
	}
	used, ok := number(root, path.Join(dir, f.used))
	if !ok {
		return 0, false
	}
	cache, _ := field(root, path.Join(dir, "memory.stat"), f.cache)
	return max(0, unit.Bytes(limit-used+cache)), true
}

// number is a file that holds one.
func number(root fs.FS, name string) (int64, bool) {
	data, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(data)), 10, 64)
	return n, err == nil
}

// field is the number after a name, in a file of one name a line.
func field(root fs.FS, file, name string) (int64, bool) {
	data, err := fs.ReadFile(root, file)
	if err != nil {
		return 0, false
	}
	for line := range strings.Lines(string(data)) {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == name {
			n, err := strconv.ParseInt(f[1], 10, 64)
			return n, err == nil
		}
	}
	return 0, false
}

// localRanks is how many ranks of a job run on this host, as far as can be known before they
// meet: all of those that only this host reaches, those that the launcher tells of, or one.
func localRanks(get func(string) string, n int) int {
	for _, name := range []string{
		"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE", "SLURM_NTASKS_PER_NODE",
	} {
		if k, err := strconv.Atoi(get(name)); err == nil && k >= 1 && k <= n {
			return k
		}
	}
	return 1
}
