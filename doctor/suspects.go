package doctor

import (
	"busbar.dev/doctor/evidence"

	"busbar.dev/finding"
)

// suspect is what to check first when nothing in the evidence names a cause: the
// likeliest causes of what people tell, in the circumstances they tell of. The
// shares are orders of likelihood, not measurements.
type suspect struct {
	id    string
	share func(c *Case) float64 // 0: not in these circumstances
	title string
	cause string
	fix   string
}

// enough is how many findings above a note make suspects superfluous.
const enough = 2

// sure is the confidence of a finding beside which suspects are noise.
const sure = 0.65

// suspects are findings for the likeliest causes, as many as are missing to two.
func (c *Case) suspects(found []finding.Finding) []finding.Finding {
	if c.about("howto") && !c.is("slow", "drop", "hang", "crash", "timeout", "unstable", "wrong") {
		return nil // a question, not a complaint
	}
	have := map[string]bool{}
	serious := 0
	for _, f := range found {
		have[f.ID] = true
		if f.Severity != finding.Note && f.Confidence >= 0.4 && !surface[f.ID] {
			serious++
		}
		if f.Severity != finding.Note && f.Confidence >= sure && !surface[f.ID] {
			return nil
		}
		if f.Severity == finding.Note && f.Confidence >= 0.6 && expected[f.ID] {
			return nil // it is as it should be
		}
	}
	var list []finding.Finding
	for len(list)+serious < enough {
		best, most := -1, 0.0
		for i, s := range suspectTable {
			if v := s.share(c); !have[s.id] && v > most {
				best, most = i, v
			}
		}
		if best < 0 {
			break
		}
		s := suspectTable[best]
		have[s.id] = true
		f := finding.Finding{
			ID: s.id, Severity: finding.Warn, Confidence: most, Title: s.title, Cause: "No line names the cause. In these circumstances this is among the first things to check: " + s.cause, Fix: s.fix,
			Evidence: first(c.quotes(evidence.Symptom, evidence.Setting), 4), Reference: trouble,
		}
		list = append(list, f)
	}
	return list
}

// expected are findings that say that nothing is wrong.
var expected = map[string]bool{"two-node-tree": true, "near-line-rate": true, "as-predicted": true, "duplex-figure": true, "small-messages": true, "one-gpu-limit": true}

// when gives a share where all of the conditions hold.
func when(share float64, conditions ...bool) float64 {
	for _, ok := range conditions {
		if !ok {
			return 0
		}
	}
	return share
}

var suspectTable = []suspect{
	{
		"gdr-off", func(c *Case) float64 {
			return max(when(0.38, c.slow(), c.in("ib"), !c.in("tcp")), when(0.35, c.slow(), c.in("roce")), when(0.3, c.slow(), c.multinodeTold(), !c.in("tcp", "efa")))
		},
		"Possibly: GPUDirect RDMA is off", "the NIC does not reach GPU memory (no nvidia-peermem, too far apart), which costs about half of the rate.",
		"Look for /GDRDMA in NCCL_DEBUG=INFO; modprobe nvidia-peermem; NCCL_NET_GDR_LEVEL.",
	},
	{
		"acs", func(c *Case) float64 {
			return max(when(0.36, c.slow(), c.in("ib", "roce"), c.in("nvswitch")), when(0.34, c.slow(), c.in("ib", "roce")), when(0.29, c.slow(), c.in("nvswitch"), c.multinodeTold()), when(0.3, c.is("crash"), c.in("ib", "roce")))
		},
		"Possibly: PCIe ACS or the IOMMU redirects traffic", "ACS on PCIe bridges or a translating IOMMU slow down or break GPUDirect RDMA and P2P.", acsFix,
	},
	{
		"roce-loss", func(c *Case) float64 {
			return max(when(0.4, c.slow(), c.in("roce")), when(0.4, c.is("unstable"), !c.in("ib")), when(0.34, c.is("hang", "timeout"), c.in("roce")))
		},
		"Possibly: the RoCE fabric drops packets (PFC/ECN)", "RoCE without flow control from end to end loses packets, and its throughput collapses at some sizes or scales.",
		"Counters out_of_sequence and rx_discards_phy (ethtool -S, hw_counters); PFC and ECN on hosts and switches; NCCL_IB_TC.",
	},
	{
		"gid-index", func(c *Case) float64 {
			return max(when(0.4, c.is("timeout", "crash"), c.in("roce")), when(0.36, c.is("hang"), c.in("roce")))
		},
		"Possibly: the wrong GID index", "RoCE connections need the routable RoCE v2 GID.", "show_gids; NCCL_IB_GID_INDEX=3, or unset it from NCCL 2.21 on.",
	},
	{
		"wrong-interface", func(c *Case) float64 {
			return max(when(0.38, c.is("timeout"), !c.in("roce")), when(0.36, c.is("hang"), c.multinodeTold(), !c.in("roce")), when(0.32, c.is("crash"), c.multinodeTold()), when(0.34, c.is("unstable"), c.in("ib")))
		},
		"Possibly: the wrong network interface", "an interface or NIC is in use that does not reach the other hosts, or belongs to another network (docker0, storage, management, Ethernet ports beside InfiniBand).",
		"NCCL_SOCKET_IFNAME and NCCL_IB_HCA to the interfaces of the training network; NCCL_DEBUG=INFO shows which are used.",
	},
	{
		"connect-failed", func(c *Case) float64 {
			return max(when(0.34, c.is("timeout", "hang"), c.multinodeTold() || c.in("mpi"), !c.rdma()), when(0.3, c.is("crash"), c.multinodeTold(), !c.rdma()))
		},
		"Possibly: a firewall between the hosts", "NCCL and MPI use ports that the kernel picks; all of them must be open between the hosts.", "nc between the hosts on a high port; allow all TCP between them.",
	},
	{
		"net-mismatch", func(c *Case) float64 { return when(0.36, c.is("hang"), c.multinodeTold()) },
		"Possibly: hosts do not use the same network or NICs", "one host sees other NICs, drivers or libraries than another.", "Compare \"Using network\" and the lists of NICs of all hosts; the same OFED, plugin and NCCL everywhere.",
	},
	{
		"iommu", func(c *Case) float64 {
			return max(when(0.38, c.is("hang"), !c.multinodeTold()), when(0.32, c.slow(), c.in("geforce", "pcie-gpu", "amd-gpu"), !c.multinodeTold()))
		},
		"Possibly: the IOMMU or ACS breaks P2P", "P2P between GPUs hangs or is slow when the IOMMU translates it.", iommuFix,
	},
	{
		"numa", func(c *Case) float64 {
			return max(when(0.38, c.slow(), c.in("geforce", "pcie-gpu", "epyc"), !c.multinodeTold()), when(0.25, c.slow(), !c.multinodeTold(), !c.about("duplex")))
		},
		"Possibly: traffic crosses CPU sockets", "GPUs without NVLink on several sockets exchange data through CPU memory.", "nvidia-smi topo -m; pin processes; NPS; NCCL_P2P_LEVEL.",
	},
	{
		"shm-too-small", func(c *Case) float64 {
			return max(when(0.42, c.in("container"), c.is("crash"), !c.rdma()), when(0.42, c.in("container"), c.Has(evidence.TorchError), !c.rdma()))
		},
		"Possibly: /dev/shm is too small in the container", "containers have 64 MiB of shared memory unless told otherwise.", "--shm-size=1g or --ipc=host; an emptyDir with medium: Memory at /dev/shm.",
	},
	{
		"fabric-manager", func(c *Case) float64 {
			return max(when(0.42, c.in("nvswitch"), c.Has(evidence.CUDAFailure) || c.First(evidence.TorchError, "ncclUnhandledCudaError") != nil), when(0.3, c.in("nvswitch"), c.is("crash"), !c.multinodeTold()))
		},
		"Possibly: the fabric manager or NVLink multicast", "on machines with NVSwitch an unhealthy fabric manager makes CUDA fail as soon as multicast or more than two GPUs are used.", "systemctl status nvidia-fabricmanager; nvidia-smi -q | grep -A2 Fabric; NCCL_NVLS_ENABLE=0 to compare.",
	},
	{
		"nvls-failed", func(c *Case) float64 {
			return max(when(0.38, c.in("nvswitch"), c.First(evidence.TorchError, "ncclUnhandledCudaError") != nil), when(0.29, c.in("nvswitch"), c.is("crash"), !c.multinodeTold()))
		},
		"Possibly: NVLS multicast", "NVLink SHARP is offered and does not work in this partition, container or driver.", "NCCL_NVLS_ENABLE=0 to compare.",
	},
	{
		"container-no-rdma", func(c *Case) float64 { return when(0.4, c.slow(), c.in("container"), c.multinodeTold() || c.rdma()) },
		"Possibly: the container has no RDMA devices", "without /dev/infiniband or the RDMA resource NCCL falls back to sockets.", "ls /dev/infiniband and ibv_devinfo in the container; request the RDMA resource.",
	},
	{
		"fabric", func(c *Case) float64 {
			return max(when(0.37, c.slow(), c.manyNodes()), when(0.3, c.slow(), c.in("ib")), when(0.33, c.is("unstable"), c.in("ib")))
		},
		"Possibly: routing or oversubscription in the fabric", "hosts collide on uplinks, or a leaf has less upward than downward.", "Pairwise tests (busbar bench pairs); adaptive routing; hosts of a job under one leaf.",
	},
	{
		"bad-link", func(c *Case) float64 {
			return max(when(0.36, c.is("unstable"), c.in("ib")), when(0.3, c.is("timeout"), c.in("ib")))
		},
		"Possibly: a bad link", "one cable or port with errors slows or ends every job that crosses it.", "ibqueryerrors; mlxlink; replace or leave out.",
	},
	{
		"socket-fallback", func(c *Case) float64 { return when(0.43, c.slow(), c.tcpLike()) },
		"Possibly: NCCL runs over TCP sockets", "1 to 4 GB/s between hosts with a network of 100 Gb/s and more is what sockets give.",
		"\"Using network\" in NCCL_DEBUG=INFO must say IB (or the plugin); NCCL_IB_HCA with the fast NICs; NCCL_NET=IB makes a job fail instead of running slowly.",
	},
	{
		"libfabric", func(c *Case) float64 { return when(0.42, c.slow() || c.is("crash"), c.in("efa", "slingshot")) },
		"Possibly: the libfabric network is not in use", "without the OFI plugin and the efa or cxi provider NCCL uses TCP.", "The log must say \"Selected Provider is efa\" (or cxi); install the plugin in the image.",
	},
	{
		"nccl-regression", func(c *Case) float64 { return when(0.3, c.slow(), c.First(evidence.Release) != nil) },
		"Possibly: a release of NCCL, driver or kernel", "the change came with a release.", "Go back to the release that worked and compare NCCL_DEBUG=INFO of both.",
	},
	{
		"nvlink-fault", func(c *Case) float64 { return when(0.36, c.slow(), c.in("nvswitch"), !c.multinodeTold(), !c.in("vm")) },
		"Possibly: NVLink is down or not used", "inside a host with NVSwitch only a lost link, P2P that is off, or too few channels cost this much.",
		"nvidia-smi nvlink --status; NCCL_DEBUG=INFO: \"via P2P\" and the number of channels; unset NCCL_P2P_DISABLE, NCCL_MAX_NCHANNELS.",
	},
	{
		"straggler", func(c *Case) float64 { return when(0.28, c.is("hang") || c.slow(), c.manyNodes()) },
		"Possibly: one slow or stuck host", "a collective waits for its slowest member.", "Pairwise tests; the log of the rank that is behind.",
	},
}
