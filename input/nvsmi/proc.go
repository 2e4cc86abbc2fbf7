package nvsmi

import (
	"io"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
	"busbar.dev/internal/lazyre"
)

const procFormat = "/proc/driver/nvidia"

// procKeys are the lines of such a file that are used.
var procKeys = lazyre.New(`^\s*(Model|GPU UUID|Bus Location):\s*(.*?)\s*$`)

// MatchProc reports whether data holds what the driver says of its GPUs in /proc/driver/nvidia/gpus/*/information. In a
// virtual machine that is often all there is: it needs no rights and no tool.
func MatchProc(data []byte) bool {
	return gather.Find(data, "Bus Location:", func(text string) bool {
		m := procKeys.FindStringSubmatch(text)
		return m != nil && m[1] == "Bus Location" && new(gpu).set("pci", m[2])
	})
}

// ReadProc reads GPUs by their address, with name and UUID. "Device Minor" is the number of the device file, which is
// not NVML's index, so it is left alone: indices come from other sources, by the address.
func ReadProc(name string, r io.Reader) (*cluster.Fragment, error) {
	v := &inventory{format: procFormat}
	var heads gather.Headings
	at := map[string]*gpu{} // the GPU that lines of a host speak of
	err := heads.Each(name, r, func(prefix, text string, num int) bool {
		m := procKeys.FindStringSubmatch(text)
		if m == nil {
			return false
		}
		if at[prefix] == nil || m[1] == "Model" {
			at[prefix] = &gpu{index: -1, line: num}
		}
		if at[prefix].set(fields[m[1]], m[2]) && m[1] == "Bus Location" {
			v.noteGPU(heads.Host(prefix), *at[prefix])
			delete(at, prefix)
		}
		return true
	})
	if err != nil {
		return nil, err
	}
	return v.fragment(name, "no GPU found; expected lines such as Bus Location: 0000:05:00.0; save the output of cat "+
		"/proc/driver/nvidia/gpus/*/information")
}
