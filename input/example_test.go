package input_test

import (
	"fmt"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input"
)

// A text is recognised by its content; a log with the output of two tools gives two fragments, which Join makes one
// cluster.
func ExampleRead() {
	text := `$ nvidia-smi topo -m
	GPU0	GPU1	CPU Affinity	NUMA Affinity
GPU0	 X 	NV4	0-31	0
GPU1	NV4	 X 	0-31	0

$ nvidia-smi -L
GPU 0: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-0000-0000-000000000001)
GPU 1: NVIDIA A100-SXM4-40GB (UUID: GPU-00000000-0000-0000-0000-000000000002)
`
	frags, err := input.Read("job.log", strings.NewReader(text))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, f := range frags {
		fmt.Println(f.Format)
	}
	c := cluster.Join(frags...)
	fmt.Println(c.Types[0].Count(cluster.GPU), "GPUs, gpu0 to gpu1:", c.Types[0].Matrix().Class[0][1])
	// Output:
	// nvidia-smi topo -m
	// nvidia-smi -L
	// 2 GPUs, gpu0 to gpu1: NV4
}

// A text that no reader knows is an error that says what was expected.
func ExampleRead_unknown() {
	_, err := input.Read("notes.txt", strings.NewReader("the job was slow today\n"))
	text, _, _ := strings.Cut(err.Error(), ";")
	fmt.Println(text)
	// Output: notes.txt: no known format in it
}
