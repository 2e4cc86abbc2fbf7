package main

// benchCmd is what can be measured: collectives, when nothing else is named.
type benchCmd struct {
	Collectives benchRunCmd    `cmd:"" name:"run" default:"withargs" hidden:"" help:"Run collectives on real memory, between processes and hosts, and measure them."`
	Pairs       benchPairsCmd  `cmd:"" help:"Measure every pair of ranks and name slow hosts, links and directions."`
	Step        benchStepCmd   `cmd:"" help:"Measure the communication of a data-parallel training step."`
	GPU         benchGPUAllCmd `cmd:"" name:"gpu" help:"Measure GPUs: NCCL's collectives, pairs, everything inside a node."`
	RDMA        benchRDMACmd   `cmd:"" name:"rdma" help:"Measure RDMA between hosts with perftest, and name slow hosts, ports and links."`
	Diff        benchDiffCmd   `cmd:"" help:"Compare stored results and tell change from noise."`
}
