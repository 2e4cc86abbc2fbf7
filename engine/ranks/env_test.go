package ranks_test

import (
	"reflect"
	"strings"
	"testing"

	"busbar.dev/engine"
	"busbar.dev/engine/ranks"
)

func TestConfigFromEnv(t *testing.T) {
	tests := []struct {
		name     string
		env      string
		launcher string
		want     engine.Config
		err      string
	}{
		{"nothing", "HOME=/x", "", engine.Config{}, ""},
		{
			"our own", "BUSBAR_RANK=2 BUSBAR_SIZE=4 BUSBAR_MEET=/x/meet BUSBAR_SECRET=s BUSBAR_BIND=eth0 BUSBAR_TRANSPORT=tcp",
			"busbar",
			engine.Config{Rank: 2, Size: 4, Meet: "/x/meet", Secret: "s", Bind: "eth0", Transport: engine.TCP},
			"",
		},
		{"our own, nowhere to meet", "BUSBAR_RANK=2 BUSBAR_SIZE=4", "busbar", engine.Config{}, "MASTER_ADDR is not set"},
		{
			"torch", "RANK=1 WORLD_SIZE=8 MASTER_ADDR=10.0.0.1 MASTER_PORT=29400", "torchrun",
			engine.Config{Rank: 1, Size: 8, Meet: "10.0.0.1:29400"},
			"",
		},
		{
			"torchrun keeps the port", "RANK=1 WORLD_SIZE=8 MASTER_ADDR=fe00::1 MASTER_PORT=29400 " +
				"TORCHELASTIC_USE_AGENT_STORE=True TORCHELASTIC_RUN_ID=j", "torchrun",
			engine.Config{Rank: 1, Size: 8, Meet: "[fe00::1]:29401", Job: "j"},
			"",
		},
		{
			"torch without a port", "RANK=0 WORLD_SIZE=2 MASTER_ADDR=h", "torchrun", engine.Config{Size: 2, Meet: "h:29500"}, "",
		},
		{"torch without a size", "RANK=1", "torchrun", engine.Config{}, "set WORLD_SIZE"},
		{"torch with nonsense", "RANK=x WORLD_SIZE=2", "torchrun", engine.Config{}, `RANK is "x"`},
		{"a rank beyond the size", "RANK=2 WORLD_SIZE=2 MASTER_ADDR=h", "torchrun", engine.Config{}, "rank 2 of 2"},
		{"slurm", "SLURM_PROCID=3 SLURM_NTASKS=16 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_NODELIST=gpu[07-08,11] SLURM_JOB_ID=77 " +
			"SLURM_STEP_ID=2", "Slurm", engine.Config{Rank: 3, Size: 4, Meet: "gpu07:", Job: "77.2"}, ""},
		{
			"slurm, older names", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_NODELIST=a SLURM_JOBID=5 SLURM_STEPID=0", "Slurm",
			engine.Config{Size: 2, Meet: "127.0.0.1:", Job: "5.0"},
			"",
		},
		{
			"slurm, bad list", "SLURM_PROCID=0 SLURM_NTASKS=2 SLURM_STEP_NODELIST=a[", "Slurm",
			engine.Config{},
			"SLURM_STEP_NODELIST",
		},
		{
			"torch inside slurm", "SLURM_PROCID=0 SLURM_NTASKS=1 RANK=1 WORLD_SIZE=2 MASTER_ADDR=h MASTER_PORT=1", "torchrun",
			engine.Config{Rank: 1, Size: 2, Meet: "h:1"},
			"",
		},
		{
			"mpirun inside slurm", "SLURM_PROCID=0 SLURM_NTASKS=1 OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 " +
				"OMPI_COMM_WORLD_LOCAL_SIZE=2 PMIX_NAMESPACE=n", "Open MPI",
			engine.Config{Rank: 1, Size: 2, Meet: "/tmp/busbar-7/meet-", Job: "n"},
			"",
		},
		{
			"Open MPI on hosts", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2", "Open MPI",
			engine.Config{},
			"several hosts",
		},
		{"Open MPI on hosts with an address", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
			"MASTER_ADDR=h MASTER_PORT=9", "Open MPI", engine.Config{Rank: 1, Size: 4, Meet: "h:9"}, ""},
		{"Open MPI on hosts with a file", "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_SIZE=2 " +
			"BUSBAR_MEET=/s/m", "Open MPI", engine.Config{Rank: 1, Size: 4, Meet: "/s/m"}, ""},
		{
			"MPICH", "PMI_RANK=2 PMI_SIZE=3 MPI_LOCALNRANKS=3", "MPICH",
			engine.Config{Rank: 2, Size: 3, Meet: "/tmp/busbar-7/meet-"},
			"",
		},
		{"one rank needs no place", "PMI_RANK=0 PMI_SIZE=1", "MPICH", engine.Config{Size: 1}, ""},
		{
			"Kubernetes", "JOB_COMPLETION_INDEX=2 WORLD_SIZE=4 MASTER_ADDR=job-0.svc MASTER_PORT=5", "Kubernetes",
			engine.Config{Rank: 2, Size: 4, Meet: "job-0.svc:5"},
			"",
		},
		{"Kubernetes without a size", "JOB_COMPLETION_INDEX=2", "Kubernetes", engine.Config{}, "set BUSBAR_SIZE"},
	}
	for _, tt := range tests {
		env := map[string]string{}
		for _, word := range strings.Fields(tt.env) {
			k, v, _ := strings.Cut(word, "=")
			env[k] = v
		}
		got, launcher, err := ranks.ConfigFromEnv(ranks.Environment{
			Getenv: func(k string) string { return env[k] }, Parent: 42,
			Temp: func() (string, error) { return "/tmp/busbar-7", nil },
		})
		if launcher != tt.launcher {
			t.Errorf("%s: launcher %q; want %q", tt.name, launcher, tt.launcher)
		}
		if tt.err != "" || err != nil {
			if err == nil || tt.err == "" || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: error %v; want one with %q", tt.name, err, tt.err)
			}
			continue
		}
		if (strings.HasSuffix(tt.want.Meet, ":") || strings.HasSuffix(tt.want.Meet, "-")) &&
			strings.HasPrefix(got.Meet, tt.want.Meet) {
			tt.want.Meet = got.Meet // a port or a name that follows from the job
		}
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s: %+v; want %+v", tt.name, got, tt.want)
		}
	}
}
