// Package profiler holds busbar's profiler plugin for NCCL: its source in C, which any compiler builds without NCCL's
// headers. It writes every operation of a process into a ring in shared memory that package input/profile reads.
package profiler

import _ "embed" // of the plugin's source

//go:embed plugin/busbar_profiler.c
var source string

// Source is the plugin in C. cc -O2 -shared -fPIC builds it.
func Source() string { return source }

// The names of the source and of the library that is made of it.
const (
	SourceName  = "busbar_profiler.c"
	LibraryName = "libnccl-profiler-busbar.so"
)
