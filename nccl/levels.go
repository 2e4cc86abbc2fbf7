package nccl

import "fmt"

// Levels is how far apart two GPUs may be that write to each other's memory, and a
// GPU and a NIC that reads and writes it (NCCL_P2P_LEVEL, NCCL_P2P_DISABLE,
// NCCL_NET_GDR_LEVEL). False where the user set nothing.
func Levels(env map[string]string) (p2p, gdr PathType, p2pSet, gdrSet bool) {
	p2p, p2pSet = userLevel(env, "NCCL_P2P_LEVEL")
	if n, ok := envInt(env, "NCCL_P2P_DISABLE"); ok && n == 1 {
		p2p, p2pSet = PathLOC, true
	}
	gdr, gdrSet = userLevel(env, "NCCL_NET_GDR_LEVEL")
	return p2p, gdr, p2pSet, gdrSet
}

// fallback is the speed of the channel that a search takes which found nothing
// (NCCL 2.28 src/graph/search.cc, ncclTopoCompute).
const fallbackBw = 0.1

// Notes tell what NCCL's own log would hide in one line: that it found no way for
// an algorithm and what follows.
func (p *Plan) Notes() []string {
	var list []string
	for _, x := range []struct {
		name string
		g    *Graph
	}{{"ring", &p.Graphs.Ring}, {"tree", &p.Graphs.Tree}} {
		if p.NNodes < 2 || x.g.NChannels != 1 || x.g.BwInter > fallbackBw+1e-6 {
			continue
		}
		text := fmt.Sprintf("NCCL %s finds no %s over these nodes and falls back to one slow channel, which leaves %d channels for every algorithm", p.Version, x.name, p.Channels)
		if p.MinCC < 90 && p.Version.From(25) && !p.Version.From(29) {
			text += "; releases 2.25 to 2.28 do so on GPUs before Hopper whose NICs are only near one GPU each: 2.29 and later do not, and NCCL_PXN_DISABLE=1 avoids it"
		}
		list = append(list, text)
	}
	return list
}
