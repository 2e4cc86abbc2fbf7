package input

import (
	"busbar.dev/input/clusterfile"
	"busbar.dev/input/ethtool"
	"busbar.dev/input/hwloc"
	"busbar.dev/input/ibnet"
	"busbar.dev/input/ibstat"
	"busbar.dev/input/k8s"
	"busbar.dev/input/nccllog"
	"busbar.dev/input/nccltests"
	"busbar.dev/input/ncclxml"
	"busbar.dev/input/nvbandwidth"
	"busbar.dev/input/nvsmi"
	"busbar.dev/input/p2pbw"
	"busbar.dev/input/rocmsmi"
	"busbar.dev/input/slurm"
	"busbar.dev/input/topograph"
)

// formats is the table of readers: documents that are one thing from end to end
// first, then what may stand anywhere in a log.
func formats() []format {
	return []format{
		{"NCCL topology XML", ncclxml.Match, ncclxml.Read, true},
		{"lstopo XML", hwloc.Match, hwloc.Read, true},
		{"nvidia-smi -q -x", nvsmi.MatchXML, nvsmi.ReadXML, true},
		{"cluster file", clusterfile.Match, clusterfile.Read, true},
		{"Kubernetes nodes", k8s.Match, k8s.Read, true},
		{"topograph model", topograph.MatchModel, topograph.ReadModel, true},
		{"NetQ topology", topograph.MatchNetQ, topograph.ReadNetQ, true},
		{"Slurm topology.yaml", slurm.MatchYAML, slurm.ReadYAML, true},
		{"ibnetdiscover", ibnet.MatchDiscover, ibnet.ReadDiscover, false},
		{"ibnetdiscover -p", ibnet.MatchPorts, ibnet.ReadPorts, false},
		{"iblinkinfo", ibnet.MatchLinkInfo, ibnet.ReadLinkInfo, false},
		{"Slurm topology.conf", slurm.MatchConf, slurm.ReadConf, true},
		{"scontrol show topology", slurm.MatchShow, slurm.ReadShow, true},
		{"scontrol show node", slurm.MatchNodes, slurm.ReadNodes, true},
		{"nvidia-smi topo -m", nvsmi.MatchTopo, nvsmi.ReadTopo, false},
		{"nvidia-smi topo -p2p", nvsmi.MatchP2P, nvsmi.ReadP2P, false},
		{"nvidia-smi -L", nvsmi.MatchList, nvsmi.ReadList, false},
		{"nvidia-smi --query-gpu", nvsmi.MatchQuery, nvsmi.ReadQuery, false},
		{"nvidia-smi", nvsmi.MatchSMI, nvsmi.ReadSMI, false},
		{"rocm-smi --showtopo", rocmsmi.Match, rocmsmi.Read, false},
		{"p2pBandwidthLatencyTest", p2pbw.Match, p2pbw.Read, false},
		{"nvbandwidth", nvbandwidth.Match, nvbandwidth.Read, false},
		{"ibstat", ibstat.Match, ibstat.Read, false},
		{"ibstatus", ibstat.MatchStatus, ibstat.ReadStatus, false},
		{"ibv_devinfo", ibstat.MatchDevinfo, ibstat.ReadDevinfo, false},
		{"ethtool", ethtool.Match, ethtool.Read, false},
		{"ibqueryerrors", ibnet.MatchErrors, ibnet.ReadErrors, false},
		{"perfquery", ibnet.MatchPerf, ibnet.ReadPerf, false},
		{"nccl-tests", nccltests.Match, nccltests.Read, false},
		{"NCCL log", nccllog.Match, nccllog.Read, false},
	}
}
