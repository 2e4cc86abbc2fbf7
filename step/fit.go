package step

import "busbar.dev/unit"

// Reserve is the share of a GPU's memory that plans and advice leave free without being told another: the allocator's
// fragments and what other libraries take are in no sum.
const Reserve = 0.05

// Room is what a job may take of a GPU's memory that leaves a share of it free.
func Room(memory unit.Bytes, reserve float64) unit.Volume {
	return unit.Volume(memory) * unit.Volume(1-reserve)
}
