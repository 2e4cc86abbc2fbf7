package nvsmi

import (
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/gather"
)

const procFormat = "/proc/driver/nvidia"

// MatchProc reports whether data holds what the driver says of its GPUs in /proc/driver/nvidia/gpus/*/information. In a
// virtual machine that is often all there is: it needs no rights and no tool.
func MatchProc(data []byte) bool {
	return gather.Find(data, "Bus Location:", func(text string) bool {
		key, value := procLine(text)
		return key == "Bus Location" && value != ""
	})
}

// procLine is a line "Key: value" of such a file.
func procLine(text string) (key, value string) {
	key, value, _ = strings.Cut(text, ":")
	if key = strings.TrimSpace(key); key == "Bus Location" {
		pci, err := cluster.ParsePCI(strings.TrimSpace(value))
		if err != nil {
			return "", ""
		}
		return key, string(pci)
	}
	return key, strings.TrimSpace(value)
}

// ReadProc reads GPUs by their address, with name and UUID. "Device Minor" is the number of the device file, which is
// not NVML's index, so it is left alone: indices come from other sources, by the address.
func ReadProc(name string, r io.Reader) (*cluster.Fragment, error) {
	v := &inventory{format: procFormat}
	var heads gather.Headings
	at := map[string]*gpu{} // the GPU that lines of a host speak of
	err := heads.Each(name, r, func(prefix, text string, num int) bool {
		key, value := procLine(text)
		g := at[prefix]
		if g == nil {
			g = &gpu{index: -1}
		}
		switch key {
		case "Model":
			if g = (&gpu{index: -1, line: num}); value != "Unknown" && len(value) < 200 {
				g.name = value
			}
		case "GPU UUID":
			if validUUID(value) { // question marks stand for a GPU that no process has opened yet
				g.uuid = value
			}
		case "Bus Location":
			if g.pci = cluster.PCI(value); value != "" {
				v.noteGPU(heads.Host(prefix), *g)
				g = nil
			}
		default:
			return false
		}
		at[prefix] = g
		return true
	})
	if err != nil {
		return nil, err
	}
	return v.fragment(name, "no GPU found; expected lines such as Bus Location: 0000:05:00.0; save the output of cat "+
		"/proc/driver/nvidia/gpus/*/information")
}
