package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
)

// oomWho names the GPU and the rank that ran out of memory first, as far as the line tells.
func (c *Case) oomWho() string {
	o := c.First(evidence.OutOfMemory)
	if o == nil {
		return "A GPU"
	}
	who := "A GPU"
	if o.Arg(0) != "" {
		who = "GPU " + o.Arg(0)
	}
	if len(o.Ranks) == 1 { // more ranks print the same where their GPUs have the same number
		who += fmt.Sprintf(" of rank %d", slices.Sorted(maps.Keys(o.Ranks))[0])
	}
	return who
}

// oomHint repeats the setting that PyTorch itself advises, where memory lies idle.
func (c *Case) oomHint() string {
	o := c.First(evidence.OutOfMemory)
	if o == nil || o.Arg(2) == "" {
		return ""
	}
	s := o.Arg(2) + ", as the log advises"
	if o.Arg(1) != "" {
		s += fmt.Sprintf(" (%s is reserved but unallocated)", o.Arg(1))
	}
	return s + ". "
}

// maxGPUs is how many GPUs a place names.
const maxGPUs = 8

// gpuList names the GPUs that observations are about: " GPU 00000000:81:00.0".
func gpuList(list []*evidence.Observation) string {
	var names []string
	for _, o := range list {
		if o != nil {
			names = append(names, o.GPUNames()...)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	more := ""
	if n := len(names) - maxGPUs; n > 0 {
		names, more = names[:maxGPUs], fmt.Sprintf(" and %d more", n)
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return " GPU " + names[0]
	}
	return " GPUs " + strings.Join(names, ", ") + more
}
