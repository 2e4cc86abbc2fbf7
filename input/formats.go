package input

import (
	"io"

	"busbar.dev/cluster"
	"busbar.dev/input/cloud"
	"busbar.dev/input/clusterfile"
	"busbar.dev/input/ethtool"
	"busbar.dev/input/hwloc"
	"busbar.dev/input/ibnet"
	"busbar.dev/input/ibstat"
	"busbar.dev/input/k8s"
	"busbar.dev/input/lldp"
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
		{"NCCL topology XML", ncclxml.Match, plain(ncclxml.Read), true},
		{"NCCL graph XML", ncclxml.MatchGraph, plain(ncclxml.ReadGraph), true},
		{"lstopo XML", hwloc.Match, plain(hwloc.Read), true},
		{"nvidia-smi -q -x", nvsmi.MatchXML, plain(nvsmi.ReadXML), true},
		{"cluster file", clusterfile.Match, clusterfile.ReadWithin, true},
		{"Kubernetes nodes", k8s.Match, plain(k8s.Read), true},
		{"cloud instance topology", cloud.Match, plain(cloud.Read), true},
		{"topograph model", topograph.MatchModel, topograph.ReadModelWithin, true},
		{"NetQ topology", topograph.MatchNetQ, plain(topograph.ReadNetQ), true},
		{"Slurm topology.yaml", slurm.MatchYAML, slurm.ReadYAMLWithin, true},
		{"ibnetdiscover", ibnet.MatchDiscover, plain(ibnet.ReadDiscover), false},
		{"ibnetdiscover -p", ibnet.MatchPorts, plain(ibnet.ReadPorts), false},
		{"iblinkinfo", ibnet.MatchLinkInfo, plain(ibnet.ReadLinkInfo), false},
		{"ibdiagnet2.lst", ibnet.MatchLST, plain(ibnet.ReadLST), true},
		{"ibdiagnet2.db_csv", ibnet.MatchDB, plain(ibnet.ReadDB), true},
		{"ibdiagnet2.net_dump", ibnet.MatchNetDump, plain(ibnet.ReadNetDump), true},
		{"UFM links", ibnet.MatchUFM, plain(ibnet.ReadUFM), true},
		{"Slurm topology.conf", slurm.MatchConf, slurm.ReadConfWithin, true},
		{"scontrol show topology", slurm.MatchShow, slurm.ReadShowWithin, true},
		{"scontrol show node", slurm.MatchNodes, slurm.ReadNodesWithin, true},
		{"lldpctl", lldp.Match, plain(lldp.Read), true},
		{"LLDP neighbours of a switch", lldp.MatchTable, plain(lldp.ReadTable), true},
		{"nvidia-smi -q", nvsmi.MatchPlain, plain(nvsmi.ReadPlain), false},
		{"nvidia-smi topo -m", nvsmi.MatchTopo, plain(nvsmi.ReadTopo), false},
		{"nvidia-smi topo -p2p", nvsmi.MatchP2P, plain(nvsmi.ReadP2P), false},
		{"nvidia-smi -L", nvsmi.MatchList, plain(nvsmi.ReadList), false},
		{"nvidia-smi --query-gpu", nvsmi.MatchQuery, plain(nvsmi.ReadQuery), false},
		{"nvidia-smi", nvsmi.MatchSMI, plain(nvsmi.ReadSMI), false},
		{"/proc/driver/nvidia", nvsmi.MatchProc, plain(nvsmi.ReadProc), false},
		{"rocm-smi --showtopo", rocmsmi.Match, plain(rocmsmi.Read), false},
		{"p2pBandwidthLatencyTest", p2pbw.Match, plain(p2pbw.Read), false},
		{"nvbandwidth", nvbandwidth.Match, plain(nvbandwidth.Read), false},
		{"ibstat", ibstat.Stat.Match, plain(ibstat.Stat.Read), false},
		{"ibstatus", ibstat.Status.Match, plain(ibstat.Status.Read), false},
		{"ibv_devinfo", ibstat.Devinfo.Match, plain(ibstat.Devinfo.Read), false},
		{"show_gids", ibstat.MatchGIDs, plain(ibstat.ReadGIDs), false},
		{"ethtool", ethtool.Match, plain(ethtool.Read), false},
		{"ibqueryerrors", ibnet.MatchErrors, plain(ibnet.ReadErrors), false},
		{"perfquery", ibnet.MatchPerf, plain(ibnet.ReadPerf), false},
		{"nccl-tests", nccltests.Match, plain(nccltests.Read), false},
		{"NCCL log", nccllog.Match, plain(nccllog.Read), false},
	}
}

// plain is a reader of texts that stand for no more than is written in them.
func plain(read func(name string, r io.Reader) (*cluster.Fragment, error)) func(*cluster.Budget, string,
	io.Reader) (*cluster.Fragment, error) {
	return func(_ *cluster.Budget, name string, r io.Reader) (*cluster.Fragment, error) { return read(name, r) }
}
