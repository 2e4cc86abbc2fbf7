package nccl

import "fmt"

// GDRLevel is how far apart a GPU and a NIC may be that reads and writes its memory (NCCL_NET_GDR_LEVEL). False where
// the user set nothing.
func GDRLevel(env map[string]string) (PathType, bool) { return userLevel(env, "NCCL_NET_GDR_LEVEL") }

// PeersAsked tells whether the user set how far apart GPUs may be and still write to each other's memory.
func PeersAsked(env map[string]string) bool {
	level, set := userLevel(env, "NCCL_P2P_LEVEL")
	return set && level > PathLOC && env["NCCL_P2P_DISABLE"] != "1"
}

// fallback is the speed of the channel that a search takes which found nothing
// (NCCL 2.28 src/graph/search.cc, ncclTopoCompute).
const fallbackBw = 0.1

// Notes tell what NCCL's own log would hide in one line: that it found no way for
// an algorithm and what follows.
func (p *Plan) Notes() []string {
	var list []string
	if p.RCCL == nil && !p.rules.SearchKnown {
		list = append(list, fmt.Sprintf("estimates and limits are those of NCCL %s; its rings, trees and channels are "+
			"taken as 2.18 has them", p.Version))
	}
	for _, x := range []struct {
		name string
		g    *Graph
	}{{"ring", &p.Graphs.Ring}, {"tree", &p.Graphs.Tree}} {
		if p.NNodes < 2 || x.g.NChannels != 1 || x.g.BwInter > fallbackBw+1e-6 {
			continue
		}
		text := fmt.Sprintf("NCCL %s finds no %s over these nodes and falls back to one slow channel, which leaves %d "+
			"channels for every algorithm", p.Version, x.name, p.Channels)
		if p.MinCC < 90 && p.rules.PathRange && !p.rules.FarNets {
			text += "; releases 2.25 to 2.28 do so on GPUs before Hopper whose NICs are only near one GPU each: 2.29 and " +
				"later do not, and NCCL_PXN_DISABLE=1 avoids it"
		}
		list = append(list, text)
	}
	return list
}
