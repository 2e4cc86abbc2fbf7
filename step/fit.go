package step

import (
	"math"

	"busbar.dev/unit"
	"busbar.dev/workload"
)

// Reserve is the share of a GPU's memory that plans and advice leave free without being told another: the allocator's
// holes, and what a batch that is longer than others needs.
const Reserve = 0.05

// Room is what a reserve leaves of a GPU's memory.
func Room(memory unit.Bytes, reserve float64) unit.Volume {
	return unit.Volume(memory) * unit.Volume(1-reserve)
}

// shown is the share of a GPU's memory that the driver gives to programs: 79.2 of an H100's 80 GiB, 139.8 of an H200's
// 141 (step/testdata/h200.json), 39.5 of an A100's 40.
const shown = 0.99

// Of what is on a GPU beside what frameworks count: context is the driver's with modules that are loaded when they are
// used (CUDA 11.7 and later; pytorch/pytorch issue 107667). A communicator has buffers for every channel and every rank
// that a channel joins, some 10 MiB each (nccl/src/init.cc), and many channels where there is NVLink: 1.6 GB for one, 6
// for three and more (NVIDIA/nccl issue 864).
const (
	context      unit.Volume = 0.45 * (1 << 30)
	communicator unit.Volume = 1.5 * (1 << 30)
	manyLinks                = 12 // of an A100; fewer carry fewer channels

	// From NCCL 2.22 on, which releases of frameworks since then come with, only connections that are used have buffers:
	// those of rings and NVLink SHARP without those of trees (NCCL_RUNTIME_CONNECT). Two thirds is an estimate.
	usedOnly     unit.Volume = 1 << 30
	connectsLate             = "2024-10"
	narrowOne    unit.Volume = 0.25 * (1 << 30)
)

// Memory is what the GPU that holds most needs for a job.
func (g *GPU) Memory(j *workload.Job) workload.Memory { return g.beside(j, j.Memory()) }

// beside adds that to what a rank of a job holds: one communicator of all ranks, and one for each way to divide a job
// where there are several.
func (g *GPU) beside(j *workload.Job, m workload.Memory) workload.Memory {
	s := &j.Split
	ways := 0
	for _, n := range [...]int{s.DP * max(s.CP, 1), s.TP, s.PP, s.CP, s.EP} {
		if n > 1 {
			ways++
		}
	}
	if ways > 1 {
		ways++
	}
	// nanotron: of a model's ranks, and of those that share its first and last matrix, too
	if j.Keeps == workload.KeepSums {
		if s.TP*s.PP > 1 {
			ways++
		}
		if s.PP > 1 {
			ways++
		}
	}
	one := communicator
	if j.Framework != nil && j.Framework.Since >= connectsLate {
		one = usedOnly
	}
	one = max(narrowOne, one*unit.Volume(min(1, float64(g.Model.Links)/manyLinks)))
	m.Driver = context + unit.Volume(ways)*one
	return m
}

// memoryOff is how far measured memory lies from predictions, as the standard deviation of a logarithm: of 520
// published runs of nanotron four of five were between 0.91 and 1.2 times as predicted.
const memoryOff = 0.11

// Fits is how likely it is that a job has room in so much memory.
func Fits(m workload.Memory, has unit.Bytes) float64 {
	room := math.Log(float64(unit.Volume(has) / m.Total()))
	return 0.5 * math.Erfc(-room/memoryOff/math.Sqrt2)
}

// Sure is how likely a job must fit for its memory not to be tight. It is said to fit where it leaves the reserve free.
const Sure = 0.8

// Spare is the share of a GPU's memory that jobs leave free whose memory is not tight.
func Spare() float64 { return 1 - math.Exp(-memoryOff*math.Sqrt2*math.Erfinv(2*Sure-1)) }
