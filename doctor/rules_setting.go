package doctor

import (
	"fmt"
	"slices"
	"strings"

	"busbar.dev/doctor/evidence"
	"busbar.dev/finding"
)

// settingRules are about the environment.
func settingRules() []Rule {
	return []Rule{
		{"setting-differs", "one setting with different values on different hosts", "hosts of a job run with different settings", envGuide, []string{"plan-differs", "net-mismatch"}, settingDiffers},
		{"channels-reduced", "NCCL_MAX_NCHANNELS and its kin", "a setting limits NCCL to few channels", envGuide + "#nccl-max-nchannels", nil, channelsReduced},
		{"ll128-forced", "NCCL_PROTO, wrong values", "LL128 is forced where it is not safe", envGuide + "#nccl-proto", nil, ll128},
		{"algorithm-forced", "NCCL_ALGO, NCCL_PROTO", "an algorithm is forced for all collectives and sizes", envGuide + "#nccl-algo", nil, algorithmForced},
		{"split-data", "NCCL_IB_SPLIT_DATA_ON_QPS=1", "messages are cut over queue pairs into small pieces", envGuide + "#nccl-ib-split-data-on-qps", nil, splitData},
		{"shm-off", "NCCL_SHM_DISABLE=1", "shared memory is switched off", envGuide + "#nccl-shm-disable", nil, shmOff},
		{"mismatch-ignored", "NCCL_IGNORE_*", "a setting hides a fault that NCCL would report", envGuide, nil, mismatchIgnored},
		{"launch-blocking", "CUDA_LAUNCH_BLOCKING=1", "kernels are launched one at a time", "https://docs.nvidia.com/cuda/cuda-c-programming-guide/", nil, launchBlocking},
		{"stale-settings", "settings that were removed or that newer releases choose better", "settings of an older release are still there", envGuide, nil, staleSettings},
		{"nics-excluded", "NCCL_IB_HCA", "a setting leaves NICs out", envGuide + "#nccl-ib-hca", nil, nicsExcluded},
	}
}

// perHost are settings that rightly differ between ranks.
var perHost = []string{
	"RANK", "LOCAL_RANK", "CUDA_VISIBLE_DEVICES", "NCCL_HOSTID", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_SOCKET_IFNAME",
	"MASTER_PORT", "NCCL_DEBUG", "NCCL_DEBUG_SUBSYS", "NCCL_COMM_ID", "OMPI_", "NCCL_IB_HCA",
}

func settingDiffers(c *Case) *finding.Finding {
	for _, name := range c.EnvNames() {
		if !strings.HasPrefix(name, "NCCL_") || slices.ContainsFunc(perHost, func(p string) bool { return strings.HasPrefix(name, p) && !strings.HasSuffix(p, "K") || name == p }) {
			continue
		}
		list := c.Values(name)
		if len(list) < 2 || len(list[0].Hosts) == 0 || len(list[1].Hosts) == 0 || overlap(list[0].Hosts, list[1].Hosts) {
			continue
		}
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.7, Title: fmt.Sprintf("%s differs between hosts: %s and %s", name, list[0].Value, list[1].Value),
			Cause: "Ranks of one job decide alone what they do; different settings give different plans, which ends in hangs, wrong sizes or the worst of both.",
			Fix:   "One environment for all hosts (mpirun -x, srun --export, the pod's template); look for /etc/nccl.conf on some of them.", Evidence: c.quotes(list[0].Quote, list[1].Quote),
		}
	}
	return nil
}

func channelsReduced(c *Case) *finding.Finding {
	for _, name := range []string{"NCCL_MAX_NCHANNELS", "NCCL_MAX_CTAS", "NCCL_MAX_NRINGS"} {
		n := atoi(c.value(name))
		if n < 1 || n > 4 {
			continue
		}
		return &finding.Finding{
			Severity: finding.Warn, Confidence: 0.65, Title: fmt.Sprintf("%s=%d limits NCCL to few channels", name, n),
			Cause: "Each channel is one block of threads and reaches about 20 GB/s over NVLink; machines with NVSwitch need 16 to 32.",
			Fix:   "unset " + name, Evidence: c.quotes(name),
		}
	}
	return nil
}

func ll128(c *Case) *finding.Finding {
	proto := c.value("NCCL_PROTO")
	forced := strings.Contains(proto, "ll128") && !strings.HasPrefix(proto, "^") || strings.HasPrefix(proto, "^") && !strings.Contains(proto, "ll128")
	wrong := c.Has(evidence.TableWrong) || c.is("wrong")
	f := &finding.Finding{
		Severity: finding.Error, Confidence: 0.8, Title: "Wrong results: LL128 where it is not safe",
		Cause: "LL128 relies on 128-byte stores arriving whole. NCCL enables it only where that holds; naming it in NCCL_PROTO (or excluding only others with ^) lifts the check. A degraded NVLink, PCIe, or the way from NIC to C2C (Grace) breaks it and data is silently wrong.",
		Fix:   "unset NCCL_PROTO, or NCCL_PROTO=^LL128; NCCL_LL128_C2C=0 on Grace; a newer NCCL; check nvidia-smi nvlink --status.", Evidence: c.quotes("NCCL_PROTO", evidence.TableWrong, evidence.Hurts),
	}
	switch {
	case wrong && (forced || c.about("ll128")):
		f.Confidence, f.Evidence = 0.9, append(f.Evidence, c.told("ll128", "wrong")...)
	case wrong && c.about("nvlinkdown"):
		f.Confidence, f.Severity, f.Evidence = 0.7, finding.Warn, c.told("nvlinkdown", "wrong")
	case wrong && (c.hurts("nccl_p2p") || c.hurts("nccl_pxn") || c.hurts("nccl_")):
		f.Confidence, f.Severity, f.Evidence = 0.6, finding.Warn, append(c.quotes(evidence.Hurts), c.told("wrong")...)
		f.Title = "Wrong results: a fault of this release's protocol (LL128) on this path"
	case c.corruptsInside():
		return nil // see iommu; LL128 needs NVLink
	case wrong:
		f.Confidence, f.Severity, f.Evidence = 0.55, finding.Warn, append(c.quotes(evidence.TableWrong), c.told("wrong")...)
	case forced:
		f.Confidence, f.Severity, f.Title = 0.6, finding.Warn, "NCCL_PROTO forces LL128 without its safety check"
	default:
		return nil
	}
	return f
}

func algorithmForced(c *Case) *finding.Finding {
	algo, proto := c.value("NCCL_ALGO"), c.value("NCCL_PROTO")
	if algo == "" && (proto == "" || strings.Contains(proto, "ll128")) {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Note, Confidence: 0.5, Title: "NCCL_ALGO or NCCL_PROTO is forced for all sizes",
		Cause: "Trees are better for small messages and many nodes, rings for large ones on few; forcing one costs at the other sizes. Fine for a measurement, not for a job.",
		Fix:   "unset NCCL_ALGO NCCL_PROTO for jobs; busbar predict --algo all shows the sizes at which each is best.", Evidence: c.quotes("NCCL_ALGO", "NCCL_PROTO"),
	}
	if c.hurts("nccl_algo") || c.hurts("nccl_proto") {
		f.Severity, f.Confidence = finding.Warn, 0.75
	}
	if proto == "ll" || algo == "tree" && c.is("slow") {
		f.Severity, f.Confidence = finding.Warn, 0.55
	}
	return f
}

func splitData(c *Case) *finding.Finding {
	if c.value("NCCL_IB_SPLIT_DATA_ON_QPS") != "1" {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Warn, Confidence: 0.5, Title: "NCCL_IB_SPLIT_DATA_ON_QPS=1 cuts messages into small pieces",
		Cause: "Every message is divided over the queue pairs of a connection; with several of them the pieces become too small for the NIC.",
		Fix:   "NCCL_IB_SPLIT_DATA_ON_QPS=0 (the default but in 2.18 and 2.19)", Evidence: c.quotes("NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_IB_QPS_PER_CONNECTION"),
	}
}

func shmOff(c *Case) *finding.Finding {
	if c.value("NCCL_SHM_DISABLE") != "1" {
		return nil
	}
	f := &finding.Finding{
		Severity: finding.Note, Confidence: 0.5, Title: "Shared memory is switched off (NCCL_SHM_DISABLE=1)",
		Cause: "GPUs of a host without P2P then talk through the NIC.",
		Fix:   "unset NCCL_SHM_DISABLE; enlarge /dev/shm instead", Evidence: c.quotes("NCCL_SHM_DISABLE"),
	}
	if c.is("slow") {
		f.Severity = finding.Warn
	}
	return f
}

func mismatchIgnored(c *Case) *finding.Finding {
	for _, name := range []string{"NCCL_IGNORE_DISABLED_P2P", "NCCL_IGNORE_NET_MISMATCH"} {
		if c.value(name) == "1" {
			return &finding.Finding{
				Severity: finding.Warn, Confidence: 0.5, Title: name + "=1 hides a fault",
				Cause: "NCCL is told not to stop where peer access or networks differ between GPUs or hosts; the job then hangs or runs slowly without a word.",
				Fix:   "unset " + name, Evidence: c.quotes(name),
			}
		}
	}
	return nil
}

func launchBlocking(c *Case) *finding.Finding {
	if c.value("CUDA_LAUNCH_BLOCKING") != "1" {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.6, Title: "CUDA_LAUNCH_BLOCKING=1 is set",
		Cause: "The CPU waits for every kernel, so that communication and computation cannot overlap; it hides races and hangs of asynchronous launches and costs a few to many per cent.",
		Fix:   "unset CUDA_LAUNCH_BLOCKING once the fault is found", Evidence: c.quotes("CUDA_LAUNCH_BLOCKING"),
	}
}

// staleNames are settings that releases removed or renamed.
var staleNames = []string{
	"NCCL_IB_CUDA_SUPPORT", "NCCL_IB_GDR_LEVEL", "NCCL_TREE_THRESHOLD", "NCCL_LL_THRESHOLD", "NCCL_LAUNCH_MODE", "NCCL_MAX_NRINGS", "NCCL_MIN_NRINGS", "NCCL_SINGLE_RING_THRESHOLD",
}

func staleSettings(c *Case) *finding.Finding {
	var names []string
	var quotes []finding.Quote
	for _, n := range staleNames {
		if e := c.Env(n); e != nil {
			names, quotes = append(names, n), append(quotes, e.Quote)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.7, Title: "Settings of older releases: " + strings.Join(names, ", "),
		Cause: "These were removed or renamed and do nothing, or not what they did.",
		Fix:   "unset " + strings.Join(names, " "), Evidence: quotes,
	}
}

func nicsExcluded(c *Case) *finding.Finding {
	hca := c.value("NCCL_IB_HCA")
	if !strings.HasPrefix(hca, "^") || !c.is("slow") {
		return nil
	}
	return &finding.Finding{
		Severity: finding.Note, Confidence: 0.5, Title: "NCCL_IB_HCA leaves NICs out: " + hca,
		Cause: "A NIC that is left out on one host must be left out on all; GPUs near it then share another one, and rails become uneven.",
		Fix:   "Test each NIC alone (NCCL_IB_HCA==mlx5_0, then the next): each should give its own rate.", Evidence: c.quotes("NCCL_IB_HCA"),
	}
}
