package ranks

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"os"
	"strconv"

	"busbar.dev/cluster"
	"busbar.dev/engine"
	"busbar.dev/internal/osdep"
)

// Environment is what of a process tells which rank it is.
type Environment struct {
	Getenv func(string) string
	Parent int // the parent process, which ranks that one launcher started on one host share
	// Temp is a folder for a file to meet in, on one host. Empty: ranks of one host need an address to meet at.
	Temp func() (string, error)
}

// ThisProcess is the environment of this process.
func ThisProcess() Environment {
	return Environment{Getenv: os.Getenv, Parent: os.Getppid(), Temp: osdep.TempFolder}
}

// ConfigFromEnv is the configuration that a launcher's environment describes, and the launcher's
// name; an empty name means that there is none. Our own variables (BUSBAR_RANK, BUSBAR_SIZE,
// BUSBAR_MEET, BUSBAR_SECRET, BUSBAR_JOB, BUSBAR_BIND, BUSBAR_TRANSPORT) come first and fill
// what a launcher leaves open.
func ConfigFromEnv(s Environment) (cfg engine.Config, launcher string, err error) {
	get := s.Getenv
	cfg = engine.Config{
		Meet: get("BUSBAR_MEET"), Secret: get("BUSBAR_SECRET"), Job: get("BUSBAR_JOB"), Bind: get("BUSBAR_BIND"),
		Transport: engine.Transport(get("BUSBAR_TRANSPORT")),
	}
	id, by, err := identify(get)
	switch {
	case by == nil || err != nil:
		return cfg, id.Launcher, err
	case id.Size == 0:
		return cfg, by.name,
			fmt.Errorf("%s: %s is set but the number of ranks is not; set %s", by.name, by.rank, by.size[len(by.size)-1])
	}
	cfg.Rank, cfg.Size = id.Rank, id.Size
	meet, job, err := by.meet(s, cfg.Size)
	cfg.Job = cmp.Or(cfg.Job, job)
	if cfg.Meet != "" || cfg.Size == 1 {
		return cfg, by.name, nil
	}
	if cfg.Meet = meet; err != nil {
		err = fmt.Errorf("%s: %w; set BUSBAR_MEET to host:port of rank 0 or to a file that all ranks can reach", by.name, err)
	}
	return cfg, by.name, err
}

// HostOf is the name of a rank's host as the environment has it: of BUSBAR_HOSTS, or of Slurm's list where there is one
// rank a node. Empty where nothing says.
func HostOf(get func(string) string, rank, size int) string {
	list := value(get, "BUSBAR_HOSTS", "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST")
	hosts, err := cluster.ParseHosts(list)
	if err != nil || len(hosts) != size || rank < 0 || rank >= size {
		return ""
	}
	return hosts[rank]
}

// launcher is where a program that starts ranks puts what they need to know.
type launcher struct {
	name string
	rank string
	size []string // the last is the one to set explicitly
	// local and count are the place among the ranks of a host, and how many those are; none
	// where the launcher does not say.
	local, count string
	meet         func(s Environment, size int) (meet, job string, err error)
}

// launchers, the most explicit first: inside a Slurm job somebody may run mpirun or torchrun,
// and then those count.
var launchers = []launcher{
	{"busbar", "BUSBAR_RANK", []string{"BUSBAR_SIZE"}, "BUSBAR_LOCAL_RANK", "BUSBAR_LOCAL_SIZE", master},
	{"torchrun", "RANK", []string{"WORLD_SIZE"}, "LOCAL_RANK", "LOCAL_WORLD_SIZE", master},
	{
		"Open MPI", "OMPI_COMM_WORLD_RANK",
		[]string{"OMPI_COMM_WORLD_SIZE"},
		"OMPI_COMM_WORLD_LOCAL_RANK",
		"OMPI_COMM_WORLD_LOCAL_SIZE", openMPI,
	},
	{"MPICH", "PMI_RANK", []string{"PMI_SIZE"}, "MPI_LOCALRANKID", "MPI_LOCALNRANKS", mpich},
	{"Slurm", "SLURM_PROCID", []string{"SLURM_STEP_NUM_TASKS", "SLURM_NTASKS"}, "SLURM_LOCALID", "", slurm},
	{"Kubernetes", "JOB_COMPLETION_INDEX", []string{"WORLD_SIZE", "BUSBAR_SIZE"}, "", "", master},
}

// master is torchrun's way, which others may follow: MASTER_ADDR and MASTER_PORT. Where
// torchrun keeps its own store at that port, the next one is taken.
func master(s Environment, _ int) (meet, job string, err error) {
	addr, port := s.Getenv("MASTER_ADDR"), s.Getenv("MASTER_PORT")
	job = s.Getenv("TORCHELASTIC_RUN_ID")
	if addr == "" {
		return "", job, fmt.Errorf("MASTER_ADDR is not set")
	}
	number := 29500
	if port != "" {
		if number, err = parseNumber(s.Getenv, "MASTER_PORT"); err != nil {
			return "", job, err
		}
	}
	if s.Getenv("TORCHELASTIC_USE_AGENT_STORE") == "True" {
		number++
	}
	return net.JoinHostPort(addr, strconv.Itoa(number)), job, nil
}

// slurm meets at the first node of the step, at a port that follows from the job's and the
// step's number, so that steps on one node do not get into each other's way.
func slurm(s Environment, _ int) (meet, job string, err error) {
	job = value(s.Getenv, "SLURM_JOB_ID", "SLURM_JOBID") + "." + value(s.Getenv, "SLURM_STEP_ID", "SLURM_STEPID")
	if s.Getenv("MASTER_ADDR") != "" {
		meet, _, err = master(s, 0)
		return meet, job, err
	}
	list := value(s.Getenv, "SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST")
	if list == "" {
		return "", job, fmt.Errorf("SLURM_STEP_NODELIST is not set")
	}
	hosts, err := cluster.ParseHosts(list)
	if err != nil {
		return "", job, fmt.Errorf("SLURM_STEP_NODELIST: %w", err)
	}
	if len(hosts) == 1 { // nobody else needs to reach it, and its name need not resolve
		hosts[0] = "127.0.0.1"
	}
	return net.JoinHostPort(hosts[0], strconv.Itoa(portOf(job))), job, nil
}

// openMPI and mpich tell ranks nothing about each other's hosts. On one host a file serves.
func openMPI(s Environment, size int) (meet, job string, err error) {
	job = value(s.Getenv, "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid")
	return oneHost(s, size, "OMPI_COMM_WORLD_LOCAL_SIZE", job)
}

func mpich(s Environment, size int) (meet, job string, err error) {
	// Hydra gives no number of the job; its proxy is the parent of all ranks of a host.
	job = s.Getenv("PMI_JOBID")
	key := job
	if key == "" {
		key = strconv.Itoa(s.Parent)
	}
	meet, _, err = oneHost(s, size, "MPI_LOCALNRANKS", key)
	return meet, job, err
}

func oneHost(s Environment, size int, local, key string) (meet, job string, err error) {
	if s.Getenv("MASTER_ADDR") != "" {
		meet, _, err = master(s, size)
		return meet, key, err
	}
	if n := s.Getenv(local); n != strconv.Itoa(size) {
		return "", key, fmt.Errorf("the ranks are on several hosts (%s is %q of %d) and the launcher does not say where "+
			"rank 0 is", local, n, size)
	}
	if s.Temp == nil {
		return "", key, errors.New("there is no folder to meet in")
	}
	dir, err := s.Temp()
	h := fnv.New64a()
	h.Write([]byte(key))
	return fmt.Sprintf("%s/meet-%016x", dir, h.Sum64()), key, err
}

// portOf spreads jobs over ports that nobody registers and the kernel does not hand out.
func portOf(job string) int {
	h := fnv.New32a()
	h.Write([]byte(job))
	return 20000 + int(h.Sum32()%10000)
}

// first is the first variable that is set, by name.
func first(get func(string) string, names ...string) string {
	for _, n := range names {
		if get(n) != "" {
			return n
		}
	}
	return ""
}

// value is the first value that is set.
func value(get func(string) string, names ...string) string { return get(first(get, names...)) }

func parseNumber(get func(string) string, name string) (int, error) {
	n, err := strconv.Atoi(get(name))
	if err != nil || n < 0 || n > 1<<16 {
		return 0, fmt.Errorf("%s is %q; expected a number from 0 to %d", name, get(name), 1<<16)
	}
	return n, nil
}
