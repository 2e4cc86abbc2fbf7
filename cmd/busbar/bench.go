package main

// benchCmd is what can be measured: collectives, when nothing else is named.
type benchCmd struct {
	Collectives benchRunCmd  `cmd:"" name:"run" default:"withargs" hidden:"" help:"Run collectives on real memory, between processes and hosts, and measure them."`
	Diff        benchDiffCmd `cmd:"" help:"Compare stored results and tell change from noise."`
}
