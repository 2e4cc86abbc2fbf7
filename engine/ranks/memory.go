package ranks

import (
	"fmt"
	"os"
	"strconv"

	"busbar.dev/internal/failure"
	"busbar.dev/internal/memlimit"
	"busbar.dev/unit"
)

// rankOverhead is what a rank takes beside its buffers: the program itself, and what it reads
// and sends through.
const rankOverhead = 8 * unit.MiB

// fits refuses ranks that would push each other out of a host's memory, before they begin to.
// Shared memory is anonymous and counts like any other; what /dev/shm has free is no bound.
func fits(ranks int, each unit.Bytes, advice string) error {
	free, of := memlimit.Free(os.DirFS("/"))
	if of == "" {
		return nil
	}
	return holds(ranks, each, unit.Bytes(free), of, advice)
}

// holds refuses ranks for which what is free is not enough; of says who sets that bound.
func holds(ranks int, each, free unit.Bytes, of, advice string) error {
	need := float64(each+rankOverhead) * float64(ranks) // floats: products may be beyond all numbers
	if need <= float64(free/10*9) {
		return nil
	}
	what := "1 rank needs"
	if ranks > 1 {
		what = fmt.Sprintf("%d ranks of %s need", ranks, gibi(float64(each+rankOverhead)))
	}
	return failure.Cannot(fmt.Errorf("not enough memory: %s %s, and %s has %s free, a tenth of which stays; take %s", what,
		gibi(need), of, gibi(float64(free)), advice))
}

// gibi is one unit for figures that are compared.
func gibi(bytes float64) string { return fmt.Sprintf("%.2f GiB", bytes/float64(unit.GiB)) }

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
