package nccltests

import (
	"math"
	"strings"
)

// programs maps the stem of a program's name to the collective in busbar's words.
var programs = map[string]string{
	"all_reduce":     "all_reduce",
	"all_gather":     "all_gather",
	"reduce_scatter": "reduce_scatter",
	"broadcast":      "broadcast",
	"reduce":         "reduce",
	"alltoall":       "all_to_all",
	"alltoallv":      "all_to_all_v",
	"gather":         "gather",
	"scatter":        "scatter",
	"sendrecv":       "sendrecv",
	"hypercube":      "hypercube",
}

// opOf names the collective of a program such as all_reduce_perf or
// all_reduce_perf_mpi, "" when it is none of nccl-tests.
func opOf(program string) string {
	stem, _, ok := strings.Cut(program, "_perf")
	if !ok {
		return ""
	}
	return programs[stem]
}

// nameOp decides what the table measured: the program if the text names it,
// else what only one collective prints.
func (t *Table) nameOp() {
	if t.Op = opOf(t.Test); t.Op != "" {
		return
	}
	t.OpFrom = ""
	if t.Op = t.opByColumns(); t.Op != "" {
		t.OpFrom = "columns"
	}
}

// opByColumns tells collectives apart by their reduction, their root and the
// factor between busbw and algbw. All-gather and all-to-all look alike, and so
// do gather and scatter; those stay unknown.
func (t *Table) opByColumns() string {
	row, n := t.Largest(), float64(t.NRanks())
	if row == nil || row.OutOfPlace == nil || row.OutOfPlace.Algbw < 1e7 || n < 2 {
		return ""
	}
	factor := float64(row.OutOfPlace.Busbw / row.OutOfPlace.Algbw)
	// Two printed decimals are all there is of either rate.
	near := func(want float64) bool {
		slack := 0.02 + 0.01e9*(1+want)/float64(row.OutOfPlace.Algbw)
		return math.Abs(factor-want) < slack*want
	}
	switch {
	case row.Redop != "" && row.Root >= 0 && near(1):
		return "reduce"
	case row.Redop != "" && row.Root < 0 && near(2*(n-1)/n):
		return "all_reduce"
	case row.Redop != "" && row.Root < 0 && near((n-1)/n):
		return "reduce_scatter"
	case row.Redop == "" && row.Root >= 0 && near(1) && !near((n-1)/n):
		return "broadcast"
	}
	return ""
}
