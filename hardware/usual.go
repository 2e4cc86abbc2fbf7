package hardware

import (
	"slices"
	"strings"
	"sync"

	"busbar.dev/unit"
)

// UsualNetwork is the InfiniBand that servers with a GPU usually have: a guess for
// machines of which only the GPU is known.
type UsualNetwork struct {
	GPU        string    `csv:"gpu"` // a part of the GPU's name
	NICsPerGPU float64   `csv:"nics_per_gpu"`
	Port       unit.Rate `csv:"port_Gbps"`
	Source     string    `csv:"source"`
}

var usualNetworks = sync.OnceValue(func() []UsualNetwork { return load[UsualNetwork]("usual_networks") })

// UsualNetworkOf is the usual network of a GPU by any name that contains its
// model: "NVIDIA H100 80GB HBM3".
func UsualNetworkOf(gpu string) (UsualNetwork, bool) {
	gpu = strings.ToLower(gpu)
	rows := usualNetworks()
	i := slices.IndexFunc(rows, func(u UsualNetwork) bool { return strings.Contains(gpu, u.GPU) })
	if i < 0 {
		return UsualNetwork{}, false
	}
	return rows[i], true
}

// portSpeed is a row of port_speeds.csv.
type portSpeed struct {
	Rate   unit.Rate `csv:"Gbps"`
	Source string    `csv:"source"`
}

// PortRates lists the rates of network ports on sale or announced, slowest first.
func PortRates() []unit.Rate {
	var rates []unit.Rate
	for _, s := range load[portSpeed]("port_speeds") {
		rates = append(rates, s.Rate)
	}
	return rates
}
