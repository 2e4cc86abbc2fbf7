package ranks_test

import (
	"strings"
	"testing"

	"busbar.dev/engine/ranks"
)

func TestIdentityFromEnv(t *testing.T) {
	for _, tt := range []struct {
		env  string
		want ranks.Identity
		err  string
	}{
		{"", ranks.Identity{LocalRank: -1}, ""},
		{"SLURM_PROCID=5 SLURM_NTASKS=8 SLURM_LOCALID=1", ranks.Identity{"Slurm", 5, 8, 1, 0}, ""},
		{
			"SLURM_PROCID=0 SLURM_NTASKS=1 RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2",
			ranks.Identity{"torchrun", 3, 4, 1, 2},
			"",
		},
		{
			"OMPI_COMM_WORLD_RANK=2 OMPI_COMM_WORLD_SIZE=4 OMPI_COMM_WORLD_LOCAL_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=2",
			ranks.Identity{"Open MPI", 2, 4, 0, 2},
			"",
		},
		{"PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2", ranks.Identity{"MPICH", 1, 2, 1, 2}, ""},
		{"JOB_COMPLETION_INDEX=3", ranks.Identity{"Kubernetes", 3, 0, -1, 0}, ""},
		{"BUSBAR_RANK=1 BUSBAR_SIZE=2 BUSBAR_LOCAL_RANK=0", ranks.Identity{"busbar", 1, 2, 0, 0}, ""},
		{"RANK=4 WORLD_SIZE=4", ranks.Identity{}, "torchrun: rank 4 of 4"},
		{"RANK=x", ranks.Identity{}, "torchrun: RANK is \"x\""},
		{"RANK=0 LOCAL_RANK=-1", ranks.Identity{}, "LOCAL_RANK"},
	} {
		env := map[string]string{}
		for _, w := range strings.Fields(tt.env) {
			k, v, _ := strings.Cut(w, "=")
			env[k] = v
		}
		got, err := ranks.IdentityFromEnv(func(k string) string { return env[k] })
		switch {
		case tt.err != "":
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("%s: %v; want %q", tt.env, err, tt.err)
			}
		case err != nil || got != tt.want:
			t.Errorf("%s: %+v, %v; want %+v", tt.env, got, err, tt.want)
		}
	}
}
