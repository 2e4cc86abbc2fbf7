package doctor

// wanted are the findings that state the cause of a trial: those of its category,
// and those that its own words name beside it.
func wanted(t *Trial) []string {
	list := byCategory[t.Category]
	return append(list[:len(list):len(list)], beside[t.ID]...)
}

// byCategory says which findings state the cause of a category of trials.
var byCategory = map[string][]string{
	"pcie-acs-iommu":        {"acs", "iommu"},
	"gdr-missing":           {"gdr-off", "dmabuf"},
	"wrong-interface":       {"wrong-interface", "no-interface", "first-checks"},
	"firewall":              {"connect-failed"},
	"net-mismatch":          {"net-mismatch"},
	"gid-index":             {"gid-index"},
	"pfc-ecn":               {"roce-loss"},
	"fabric":                {"fabric", "gpudirect-tcpx"},
	"mtu":                   {"mtu-mismatch"},
	"shm":                   {"shm-too-small"},
	"memlock":               {"memlock", "queue-memory", "registration"},
	"container":             {"container-no-rdma", "nodes-miscounted", "address-family"},
	"socket-fallback":       {"socket-fallback", "libfabric", "ib-disabled", "ib-device-unusable"},
	"bandwidth-expectation": {"two-node-tree", "near-line-rate", "as-predicted", "duplex-figure", "slow-network", "tcp-cpu-bound", "small-messages", "one-gpu-limit"},
	"bonding":               {"bond-one-port"},
	"single-nic":            {"single-nic", "nic-shared"},
	"algorithm":             {"ring-or-tree", "graph-search", "nccl-regression", "algorithm-forced", "linear-growth"},
	"ll128":                 {"ll128-forced"},
	"nvls":                  {"nvls-failed", "fabric-manager"},
	"fabric-manager":        {"fabric-manager"},
	"vm-topology":           {"vm-topology"},
	"numa":                  {"numa", "cpu-binding"},
	"straggler":             {"straggler", "gpu-throttled"},
	"bad-link":              {"bad-link", "port-down"},
	"test-setup":            {"single-rank", "device-ordinal"},
	"scale":                 {"topology-limit", "queue-memory", "open-files", "arp-table", "ports-exhausted", "thread-limit"},
	"p2p-driver":            {"p2p-hang", "cuda-ipc", "bar1"},
}

// beside are findings that state the cause of one trial though its category is
// another, because its own words name that cause.
var beside = map[string][]string{
	"iommu-nps-115":            {"iommu"},            // "GPU Direct not functional through the CPU (IOMMU)"
	"gather-drop-350":          {"gdr-off"},          // "GDR level; NCCL_NET_GDR_LEVEL=SYS needed"
	"ib-sys-243":               {"gdr-off"},          // "no GDR: one CPU copy path is the limit"
	"crossrail-2345":           {"plan-differs"},     // "tree/PXN construction"
	"roce-altring-1494":        {"plan-differs"},     // "one node has crossNic=1 search result"
	"hca-mismatch-hidden-2428": {"mismatch-ignored"}, // "NCCL_IGNORE_NET_MISMATCH=1 hides the guard"
}

// undecidable are trials whose evidence, without their cause, leaves the cause
// open, with the reason.
var undecidable = map[string]string{
	"ucx-vs-nccl-hca-290": "the settings that differ are not shown",
	"mtu-709":             "neither an MTU nor a length error is shown",
	"bloom-hang-blocking": "the cause was never found; the fix alone names it",
}
