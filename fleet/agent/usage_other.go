//go:build !unix

package agent

func cpuTime() float64 { return 0 }
