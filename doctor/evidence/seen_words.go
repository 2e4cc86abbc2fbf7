package evidence

import (
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/hardware"
)

// chips are the names of GPUs without size and form whose variants in the catalogue are all such, or some of them: as
// words to look for and as an expression.
func chips(all bool, is func(*hardware.GPUModel) bool) (words, pattern string) {
	var names, others []string
	for _, m := range hardware.GPUs() {
		name, _, _ := strings.Cut(m.Name, "-")
		if is(&m) {
			names = append(names, name)
			if m.Form == "chip" { // whose machines go by names of their own
				names = append(names, strings.ToLower(strings.Join(m.Names, "|")))
			}
		} else if all {
			others = append(others, name)
		}
	}
	words = strings.Join(slices.DeleteFunc(names, func(n string) bool { return slices.Contains(others, n) }), "|")
	return words, `(?i)(?:\b|\dx ?)(?:` + words + `)\b`
}

// seenWords is what people write about a fault: symptoms, circumstances, what
// they tried. These rows are asked only about sentences, so that the word "slow"
// in a program's output says nothing.
func seenWords() []seen {
	cards, isCard := chips(true, func(m *hardware.GPUModel) bool { return m.Form == "card" && m.GDR == cluster.Yes })
	switched, isSwitched := chips(false, func(m *hardware.GPUModel) bool {
		return m.Module() && m.LinkKind == cluster.NVLink && m.Links >= 8
	})
	super, isSuper := chips(false, func(m *hardware.GPUModel) bool { return strings.HasSuffix(m.Form, "chip") })
	any, _ := chips(false, func(m *hardware.GPUModel) bool { return m.Vendor == "nvidia" })
	rows := []seen{
		symptom("hang", "hang|stuck|deadlock|freez|frozen|never |blocks forever|no progress|stall|prints nothing|others "+
			"wait",
			`prints nothing|others wait|never (?:starts?|connects?|completes?|joins?)|\bhang(?:s|ing)?\b|\bhung\b|stuck|deadlock|freez|frozen|never (?:returns?|finish)|blocks? forever|no progress|\bstall`),
		symptom("slow", "reduction|decrease|loss|slow|poor|low|below|only|instead of|less|hal|drop|fall|fell|degrad|bad "+
			"perf|reaches|saturat|limit|bottleneck|gives|worse|max busbw|average|capped|plateau|underperform|far from|stops "+
			"at|not |unable|cannot|never|n't|bandwidth issue|performance issue|tcp speed|a third|a "+
			"quarter|drags|loses|collapse|longer|where|while|against|versus|takes|%",
			`(?:performance|bandwidth|throughput|speed) (?:reduction|decrease|loss)\b|slow|poor|\blow\b|below|\bonly\b|instead of|less than|\bhal(?:f|ves|ved)\b|drops?\b|\bf[ae]lls?\b|degrad|bad perf|reaches (?:\d|half)|saturates? at|limited to|extremely low|\blower\b|worse|\bgives \d|max busbw|average \d|capped|plateau|underperform|far from|stops at|(?:bandwidth|performance) issue|TCP speed|a third|a quarter|\bdrags\b|loses \d|collaps|\blonger\b|\d+ (?:hours?|h|days?|minutes|min|s) (?:where|while|against|versus|vs)\b|(?:not|n't|unable to|cannot|never) (?:reach|get|achieve|use|saturate)\w* (?:the )?(?:full |network |ideal |theoretical |expected )?(?:\w+ )?(?:bandwidth|performance|speed)|(?:at|reach(?:es)?|gets?|about) (?:about )?\d{1,2} ?%|\d+x slower|takes \d+ ?(?:s|ms|min|h)\b`),
		symptom("drop", "->|drop|fall|regress|slower than|after the|after upgrad|upgrade|between nccl|than 2.",
			`drops? from|falls? from|from ~?\d[\d.]* to ~?\d|regress|\d+x slower than|after (?:the |an? )?[\w. ]{0,24}(?:upgrade|update)|between NCCL|\d+(?:\.\d+)? ?(?:GB/s|h)? ?-> ?\d|bandwidth drop|slower with 2\.|slower than 2\.`),
		symptom("crash", "crash|abort|segfault|fail|error|unhandled|exception",
			`crash|abort|segfault|\bfail(?:s|ed|ure)?\b|\berrors?\b|unhandled|exception`),
		symptom("timeout", "time out|timeout|timed out|times out|retry count", `times? ?out|timed out|timeouts|retry count`),
		symptom("unstable", "unstable|nois|dips|fluctuat|jitter|hiccup|varies|intermittent|spread|sporadic|spik|occasional|run to run|depending on which|differs", `unstable|\bnois|\bdips?\b|fluctuat|jitter|hiccup|varies|intermittent|spread|sporadic|spik|occasional|run to run|depending on which|differs? (?:from|between) (?:run|day)`),
		symptom("wrong", "corrupt|wrong |incorrect|nan|failed\" at|diverge|results differ",
			`\bcorrupt|wrong (?:values?|results?|sums?|answers?|numbers?|data)|incorrect (?:values?|results?|sums?)|\bNaN\b|\d+ FAILED|results? differ|diverges`),
		symptom("scale", "node|gpus|scal|ranks",
			`(?i)(?:falls?|drops?|worse|degrad\w*|decreas\w*) (?:with|as) (?:the )?(?:node|number|world|scale)|scales? linearly|on >= ?\d+ nodes|only (?:at|on|with|beyond|above) \d+ (?:nodes|gpus|ranks)|as (?:the )?(?:number of )?(?:nodes|ranks|hosts) (?:grow|increas)\w*|(?:number of|more) nodes (?:grows|increases)|more than \d+ nodes|nodes?\b.{0,40}\b(?:on|with|at|for) \d+ (?:to \d+ )?nodes|\b\d{2,4} nodes\b|grows (?:linearly|with)`),
		symptom("once", "transient|retry", `transient`),
		told(Setting, "vm", "vm|virtual|proxmox|openstack|azure|nd|nc|passthrough|pass-through|hypervisor|kvm|esxi|qemu|g5.|guest|bare metal|bare-metal", `\bVMs?\b|virtuali[sz]|virtual machine|pass-?through|hypervisor|\bKVM\b|ESXi|QEMU|g5\.\d|\bguests?\b|\bN[CD]\w*_?v\d\b|\bN[CD]\d+\w*|\bProxmox\b|OpenStack`),
		told(Setting, "container", "docker|container|kubernetes|k8s|pods|pod "+
			"|pod's|kubeflow|singularity|apptainer|enroot|image|podman|pytorch ci| ci",
			`(?i)docker|container|kubernetes|\bk8s\b|\bpods?\b|kubeflow|singularity|apptainer|enroot|podman`),
		told(Setting, "roce", "roce", `(?i)\brocev?2?\b`),
		told(Setting, "ib", "infiniband|ib |edr|hdr|ndr|mlx5",
			`(?i)infiniband|(?:^|[^/\w])IB\b|\b(?:\dx)?(?:EDR|HDR|NDR|FDR)\d*\b`),
		told(Setting, "efa", "efa|aws |p4d|p5 |p5.|g5.", `\bEFA\b|\bAWS\b|p4d|\bp5\b|\bg5\.`),
		told(Setting, "slingshot", "slingshot|cxi|alps", `(?i)slingshot|\bcxi\b`),
		told(Setting, "gcp", "tcpx|a3 high|a3 mega|a3-", `(?i)tcpxo?\b|A3 (?:high|mega|ultra)|a3-(?:high|mega|ultra)gpu`),
		told(Setting, "tcp", "tcp|ethernet|socket|iperf|gbe", `(?i)\btcp\b|ethernet|\bsockets\b|iperf|\d+ ?GbE`),
		told(Setting, "mpi", "mpirun|mpi ", `(?i)mpirun|\bMPI\b`),
		told(Setting, "multinode", "multi-node|nodes|node|inter-node|cross-node|multinode|racks|cluster|hosts|machine|servers|workers|pods|computers|instances|vms|dgx|hgx|x8 |x4 ", `(?i)multi-?node|\b(?:[2-9]|\d{2,4}|two|three|four|six|eight|both)[ -](?:[A-Z][\w-]* )?(?:nodes?|hosts|machines|servers|workers|pods|computers|instances|VMs)\b|\b(?:[2-9]|two|four|eight) ?x? ?(?:DGX|HGX)|multi-?machine|(?:between|across|over) (?:several |all |the )?(?:nodes|racks|hosts|machines|servers|switches)|(?:inter|cross)-?node|several nodes|across (?:nodes|hosts|machines)|\b\d+x\d+ [A-Z]|racks|\bcluster\b`),
		told(Setting, "alltoall", "alltoall|all-to-all|all_to_all", `(?i)all-?_?to-?_?all`),
		told(Setting, "reducescatter", "reduce_scatter|reduce-scatter|reducescatter|gather",
			`(?i)reduce[_-]?scatter|\bgather\b`),
		told(Setting, "amd-gpu", "mi1|mi2|mi3|rccl|rocm|amd gpu",
			`(?i)\bMI\d{2,3}[AX]?\b|rccl|rocm|AMD (?:gpu|set-?up)`),
		told(Setting, "geforce", "rtx|gtx|geforce|080|090|titan",
			`(?i)\bRTX ?A?\d|\bGTX ?\d|geforce|\b[1-5]0[89]0(?: ?ti)?\b|titan`),
		told(Setting, "pcie-gpu", "pcie|"+cards, isCard+`|-PCIe|\bPCIe\b`),
		told(Setting, "nvswitch", "hopper|hgx|dgx|nvswitch|"+switched, isSwitched+`|Hopper|HGX|DGX|NVSwitch`),
		told(Setting, "superchip", "grace|"+super, isSuper+`|\bGrace\b`),
		told(Setting, "epyc", "epyc|nps|amd_iommu|xgmi|threadripper", `(?i)EPYC|\bNPS ?=?\d?|amd_iommu|xGMI|Threadripper`),
		told(Setting, "amd-host", "amd ", `(?i)\bAMD (?:host|server|system|CPU|machine|platform|motherboard)`),
		told(Setting, "lossy", "lossy|drops packets|packet loss|pfc|ecn|congest|pause frame",
			`(?i)lossy|drops? packets|packet (?:loss|drop)|\bPFC\b|\bECN\b|congest|pause frame`),
		told(Release, "nccl", "nccl 2|2.1|2.2|nccl version|with 2.|than 2.|2.3|2.4|2.9",
			`(?:NCCL )?\bv?2\.\d+(?:\.\d+)?\b.{0,30}(?:->|to|and|than|,).{0,16}\bv?2\.\d+|with (?:NCCL )?2\.\d+|only with NCCL|than 2\.\d+|after NCCL|\b2\.\d+\.\d+:? \d`),
		told(Release, "kernel", "kernel", `(?i)kernel \d+\.\d+.{0,20}(?:->|to)|(?:newer|after).{0,20}kernel`),
		told(Release, "os", "upgrade|update",
			`(?i)after (?:the |an? )?[\w. ]{0,30}(?:upgrade|update)|\bDGX ?OS\b.{0,30}upgrade`),
		told(Blames, "nic", "rdma|nic |mlx5_|one nic|hca",
			`(?i)whenever (?:local_nic )?\w+ is used|(?:failures?|errors?) (?:\w+ )?on (?:rdma|mlx5_|nic)\w*|only when .{0,12}(?:nic|hca)|only (?:one|a single) .{0,12}(?:nic|hca) (?:fail|is (?:slow|bad)|drop)|\b(?:one|single) (?:NIC|HCA|port) (?:is |was )?(?:bad|slow|fail|drop|flap|broken|faulty)|(?:slow|fail|error)\w* (?:on|over|through) (?:one|a single) (?:NIC|HCA|port)`),
		told(Blames, "pairs", "pair", `(?i)pair(?:s|wise)? (?:tests?|hang|of)|between pairs|\d{2,4},\d{2,4} \d`),
		told(Blames, "local-nic", "switch|local nic|remote one|pix",
			`(?i)(?:same|one|a) (?:PCIe )?switch (?:is|are|was|were) (?:much |far |a lot )?(?:slow|wors)|local NIC.{0,20}slower|NIC on the same switch|(?:below|behind|under) (?:one|the same|a) (?:PCIe )?switch.{0,40}(?:slow|hang|wors)|\bPIX\b.{0,30}(?:slower|hang|worse)`),
		told(Blames, "pix", "pix|pxb|sys;", `(?i)\b(?:PXB|PIX)(?:/P..)? pairs? hang|works only between GPUs joined by SYS`),
		told(Blames, "racks", "rack|switches",
			`(?i)only between racks|between (?:racks|switches|leaf)|across (?:racks|switches|leaf|spine)|multi-?rack|cross-?rack|double rack|(?:two|different|several) (?:switches|racks|leaves)`),
		told(Blames, "node", "one node|node",
			`(?i)one node (?:is |always |only)?(?:slow|fast|complet)|by one node only|one side`),
		told(Blames, "direction", "<->|between node",
			`\d<->\d|between nodes? \w+ ?(?:\+|&|and) ?\w+ ?\(\d.{0,80}(?:vs|versus|and|but|while).{0,60}\w+ ?(?:\+|&|and) ?\w+ ?\(\d`),
	}
	for _, t := range topics {
		rows = append(rows, told(Topic, t[0], t[1], `(?i)`+t[2]))
	}
	return append(rows,
		seen{
			kind: Helps, words: "nccl_",
			pattern: `(?i)(?:hangs?|fails?|crash\w*|errors?|aborts?|broken)[\w ,]{0,30} without (NCCL_\w+ ?= ?\w+)`,
			take:    lowered, told: true,
		},
		seen{
			kind: Hurts, words: "nccl_",
			pattern: `(?i)(?:wrong values|hangs?|fails?|slow\w*|corrupt\w*|crash\w*) (?:with|when|after)(?: setting)? (NCCL_\w+ ?= ?\w+)`, take: lowered, told: true,
		},
		seen{
			kind: Hurts, words: "nccl_",
			pattern: `(?i)(NCCL_\w+ ?= ?\w+) (?:slows|hurts|breaks|costs|halves|corrupts|makes \w+ (?:slow|wors)\w*)`,
			take:    lowered, told: true,
		},
		seen{
			kind: Hurts, words: "gpudirect|gpu direct|gdr|p2p|pxn|ll128|ece",
			pattern: `(?i)(?:hangs?|fails?|crash\w*|low|slow\w*|corrupt\w*|wrong|abort\w*|worse|drops?|falls?|unstable)[\w ,]{0,40}?(?:with|when|using|as soon as|if|once|after|by)[\w ]{0,24}? (GPU ?Direct(?: RDMA)?|GDR|P2P|PXN|LL128|PCIe P2P|ECE)\b`, take: lowered, told: true,
		},
		seen{
			kind: Hurts, words: "ll128", pattern: `(?i)(?:forced|with) (LL128)\b|(LL128) corrupt`, take: anyGroup, told: true,
		},
		seen{
			kind: Completion, words: "error 12|error 4|status 12|status 4|retry exceeded",
			pattern: `(?i)\b(?:completion )?(?:error|status) (12|4|10|11|13)\b()`, told: true,
		},
		seen{
			kind: Layout, words: "pix|pxb",
			pattern: `(?i)(?:mlx5_?\d*|NIC ?\d*|HCA)\W{1,3}(?:PIX|PXB)\b.{0,120}\b(?:NODE|SYS|PHB)\b`, take: none, told: true,
		},
		seen{
			kind: Device, words: "rtx|gtx|mi1|mi2|mi3|" + any,
			pattern: `(?i)\b(RTX ?\d{4}|GTX ?\d{4}|MI\d{2,3}X?|[ABHV]\d{2,3}0|` + any + `)\b`, take: lowered, told: true,
		},
	)
}

// topics are what a sentence speaks of.
var topics = [][3]string{
	{"acs", "acs", `\bACS\b`},
	{"iommu", "iommu|vt-d", `\bIOMMU\b|\bVT-?d\b`},
	{
		"gdr", "gdr|gpudirect|gpu direct|gpu rdma|peermem|peer_mem|dmabuf|dma-buf",
		`\bGDR|GPU ?Direct|GPU RDMA|peer_?mem|DMA-?BUF`,
	},
	{"gid", "gid", `\bGIDs?\b`},
	{"mtu", "mtu|9000|jumbo", `\bMTU\b|\d-MTU|\b9000\b.{0,40}\b1500\b|\b1500\b.{0,40}\b9000\b`},
	{
		"installed", "installed|installing",
		`(?:since|after) (?:we |the )?(?:installing )?(?:docker|podman|a VPN|VPN|tailscale|wireguard|kubernetes|libvirt|virtualbox|vmware)\b.{0,24}`,
	},
	{"jumbo", "jumbo", `jumbo`},
	{"pfc", "pfc|ecn|dcqcn|lossless|lossy|pause", `\bPFC\b|\bECN\b|DCQCN|lossless|lossy`},
	{"ece", "ece", `\bECE\b`},
	{"bond", "bond|lacp|lag|port channel|port-channel", `\bLAG\b|port[- ]channel|\bbond(?:ed|ing)?\d*\b|_bond_|\bLACP\b`},
	{
		"numa", "numa|nps|socket",
		`\bNUMA\b|\bNPS\d?\b|CPU sockets?|\bsocket [01]\b|(?:other|different|wrong|between|across) sockets?|cross-socket|\b(?:2|two|dual|multi)-?socket`,
	},
	{"nvls", "nvls|multicast", `\bNVLS\b|multicast`},
	{
		"fabric-manager", "fabric manager|fabricmanager|fm failure|fm stall|cuda 802",
		`fabric ?manager|\bFM (?:failures?|stall|not|unhealthy)|CUDA 802`,
	},
	{"ll128", "ll128", `\bLL128\b`},
	{"tree", "tree", `tree\b`},
	{"ring", "ring", `\bRing\b`},
	{"pxn", "pxn", `\bPXN\b`},
	{"shm", "shm|shared memory|no space left", `\bshm\b|/dev/shm|shared memory|no space left on device`},
	{"memlock", "locked memory|memlock|ulimit", `locked memory|memlock|\bulimit\b`},
	{
		"firewall", "firewall|ufw|security group|port|mpirun itself hangs",
		`firewall|\bufw\b|security group|only ports? \d|ports?\b.{0,24}\b(?:blocked|closed|filtered|not open|are open)|port range|mpirun itself`,
	},
	{
		"ibdisabled", "without libibverbs|ipoib|network_tier|not usable in container|ib not usable",
		`without libibverbs|IPoIB|IB not usable|network_tier`,
	},
	{"plugin", "net plugin|plugin|nri|device injector", `\bnet plugin\b|aws-ofi-nccl|device injector`},
	{"topofile", "topology file|topo file|nccl_topo_file|topology xml", `topo(?:logy)? (?:file|XML)|NCCL_TOPO_FILE`},
	{"howto", "how|what is|question", `^(?:how (?:to|do|can|should)|what is|question)|\?$`},
	{"topology", "topology|topo -m|pcie levels|pci tree", `topology|topo -m|PCIe levels|PCI tree|NUMA .{0,16}-1`},
	{"topolimit", "node limit|xml node", `XML node limit|topology XML.{0,30}limit`},
	{
		"nvlinkdown", "nvlink",
		`NVLink (?:is |was |shows )?(?:down|inactive|fail\w*|broken?|dead|lost|fault)|one NVLink|(?:failed|broken|degraded) NVLink`,
	},
	{"flap", "flap", `\bflap`},
	{
		"crossrail", "cross-rail|cross rail|crossrail|crossnic|cross_nic| rail",
		`cross-?rail|\bcross_?nic|(?:leave|leaves|off) (?:the|their) rail|not on the same rail`,
	},
	{"crossnic", "crossnic", `crossNic ?= ?[01]`},
	{"hpcx", "hpc-x|hpcx|ofed|ucx", `HPC-?X|\bOFED\b`},
	{"mgmt", "management", `management (?:port|network|interface|NIC)`},
	{
		"gpupath", "use_cuda|gpu to nic|gpu memory|host memory",
		`use_cuda|with (?:GPU|host) memory|GPU(?: memory)? (?:to|->) (?:the )?NIC|host memory (?:to|->) (?:the )?NIC`,
	},
	{
		"nicset", "ibdev2netdev|with one|nics differ|several|multiple|nic|hca|network card|mlx5_",
		`(?:several|multiple|more|all|\d+) (?:IB |RDMA )?(?:NICs|HCAs).{0,60}(?:fine|works|ok)\b.{0,8}with (?:one|a single|1)|ibdev2netdev.{0,80}differ|NIC(?:s| sets?) differ|different (?:NIC|HCA|network card)s?\b|(?:NIC|HCA)s? (?:names?|layouts?|topolog\w+|numbering|counts?) (?:differ|(?:is|are) (?:different|not the same))|the same (?:NIC|HCA) (?:layout|topology|names)|\b(?:one|master|first) .{0,30}mlx5_\d.{0,60}\b(?:other|worker|second) .{0,20}mlx5_\d`,
	},
	{
		"onenic", "only|one nic|single nic| of |alone|one interface|one hca|one port|with both|with all|with two|all " +
			"channels|all traffic",
		`(?:on|over|through) (?:mlx5_\d+|eth\d|rdma\d+|one NIC) (?:alone|only)|only (?:mlx5_\d+|eth\d|rdma\d+|ib\d) (?:moves|carries|shows|has|sees|counts)|(?:only )?(?:one|a single) (?:NIC|HCA|port|interface|rail) (?:is |was |gets )?used|uses? (?:only )?\d of (?:the )?\d+ (?:NICs|HCAs|rails)|only (?:eth|en|ib|mlx5_|bond|rdma)\w* is (?:being )?used|uses? only (?:one|a single|eth\d|mlx5_\d)|(?:uses?|using) (?:one|a single) (?:NIC|HCA|port|interface|rail)\b|(?:one|a single) (?:NIC|HCA|interface) only|with (?:both|all|two) (?:HCAs|NICs|ports|interfaces|rails)\b.{0,60}\d|all channels say|all (?:traffic|channels) (?:goes|go|are|use) (?:over|on|through) (?:one|a single)`,
	},
	{
		"routing", "ecmp|rout|path|congested|overloaded|spine|uplink|hash|leaf|leaves",
		`\bECMP\b|adaptive ?routing|\bleaf\b|\bleaves\b|static rout|routing (?:collision|table)|asymmetric rout|\bspine\b|uplinks?|hash collision|(?:overloaded|congested) (?:path|link)|one path\b.{0,60}(?:idle|empty|unused)`,
	},
	{
		"sharednic", "share|gpus per nic|per nic|one nic",
		`(?:share[sd]?|sharing) (?:one|a|the same|a single|the) (?:\w+ )?(?:NIC|HCA|port|adapter)|NIC is shared|\d GPUs? (?:per|a|to a) NIC|one NIC (?:for|per|a) (?:node|host|\d+ GPUs|all GPUs)|shared NIC`,
	},
	{"busbw0", "bandwidth 0|busbw 0", `(?:bus ?bandwidth|busbw)\s*:? ?0(?:\.0+)?\s*$`},
	{
		"nocomm", "no communication|no connection|no traffic|separately|the same |rank 0|separate tables|own " +
			"table|nranks|without mpi",
		`no (?:communication|connections?|traffic) between|separately on (?:each|every|both)|the same (?:bandwidth|results?|numbers?) (?:as|on) (?:one|a single) (?:host|node|machine)|without MPI(?:=1)?\b|rank 0 \w+ times|nranks ?=? ?1\b|(?:lists?|prints?|shows?) (?:only )?"?Rank 0"?(?: only)?|separate tables|(?:its|their) own table|\d+ tables`,
	},
	{
		"abovelimit", "the nic|above|faster than|exceed|higher than|more than|beyond",
		`\b(?:1\.[1-9]\d?|2(?:\.0)?) ?x the (?:NIC|link|network|line|port)|(?:above|exceeds?|higher than|more than|beyond|greater than) (?:the |what the )?.{0,24}(?:theoretical|limit|line rate|NICs?|network|link speed)|Tree faster than Ring|faster than (?:the )?(?:NIC|network|line)`,
	},
	{"pp", "pipeline", `pipeline (?:training|parallel|stage|bubble)|idle bubble`},
	{"tp", "tensor parallel", `tensor[- ]parallel`},
	{
		"slownode", "always|straggl|one |without|throttl|lag|wait|follows|whenever|slow",
		`throttl|without (?:node|host|rank|gpu)[\w-]*\d|one (?:node|host|rank|GPU) (?:always|is slow|is hot|takes|lags)|always completes? faster|straggl|\bone (?:GPU|rank|node|host|worker|machine) (?:is |was |runs? )?(?:always |much |consistently |often )?(?:slow|behind|lag|late)|lags? behind|follows? (?:one|a (?:specific|particular|single|certain)) (?:node|host|GPU|machine)|whenever (?:node|host|rank|gpu)[\w-]* (?:is|takes|was)\b|slow(?:er)? only (?:with|when) (?:node|host|rank)[\w-]*|wait(?:s|ing)? for (?:the slowest|one (?:rank|node|GPU)|that)`,
	},
	{
		"privileged", "privileged",
		`(?:works?|runs?|ran|fine|ok|passes|succeeds?)\b.{0,40}(?:with|when|if|in|using|under).{0,24}-?-?privileged|(?:fails?|failed|crash\w*|errors?)\b.{0,40}without.{0,12}-?-?privileged`,
	},
	{"vgpu", "vgpu|grid |mig ", `\bvGPUs?\b|\bGRID [A-Z]\d|-\d+[CQ] profile`},
	{"releaseok", "2.", `(?:with|in|on|under|using) (?:NCCL )?v?2\.\d+(?:\.\d+)?,? (?:it |this |the (?:error|issue|problem|hang) |everything |all )?(?:does not|doesn't|do not|never|works|worked|is fine|is ok|runs|ran|passes|goes away)`},
	{
		"mesh", "istio|envoy|linkerd|service mesh|sidecar|side-car",
		`\bistio|\benvoy\b|linkerd|service mesh|side-?car (?:proxy|container|injection)`,
	},
	{
		"vpn", "vpn|tailscale|wireguard|zerotier|tunnel", `\bVPN\b|tailscale|wireguard|zerotier|tunnel (?:interface|address)`,
	},
	{
		"samehost", "containers|pods",
		`(?:containers|pods) (?:are |were |is )?(?:scheduled |placed |started |running )?(?:on|of|in|to) (?:one|the same|a single) (?:node|host|machine|server)`,
	},
	{
		"wrongif", "although|instead of|rather than|despite",
		`\b(?:eth|eno|ens|enp|ib|bond)\w*\b.{0,30}\b(?:although|instead of|rather than|despite)\b`,
	},
	{
		"thinnet", "network|ethernet|link|nic",
		`\b(?:1|2\.5|10|25) ?G(?:b|bps|bE|bit|igabit)?(?:/s)?(?: \w+)? ?(?:networking|network|ethernet|link|NICs?)\b`,
	},
	{
		"onegpu", "each|per node|a node|per host",
		`\b(?:one|1|single) (?:GPU|[ABHV]\d{2,3}0?|GB?H?200)s? (?:each|per|a) ?(?:node|host|machine)?`,
	},
	{
		"linear", "linearly|world size|small|middle|medium",
		`scales? linearly|with (?:the )?world size|(?:small|middle|medium|mid)(?:-| )?(?:sized?|messages?)?\w* .{0,50}(?:fall|drop|decreas|slow|grow|worse)\w* .{0,30}(?:nodes|ranks|GPUs)`,
	},
	{"payload", "small payload|small message|bucket|tiny", `small (?:payload|message)s?|bucket`},
	{
		"duplex", "advertised|theoretical|900 gb|600 gb|1800 gb|1.8 tb|bidirectional|spec|datasheet",
		`advertised|theoretical (?:nvlink|aggregate)|bidirectional|(?:spec(?: sheet)?|datasheet|data sheet|NVLink).{0,24}\b(?:600|900|1800) ?GB`,
	},
	{
		"pcielow", "pcie|gen1|gen2|gen3|downgrad|x8|x4",
		`(?:runs?|running|trained|negotiated|stuck|linked|only) (?:at|as|with)? ?(?:PCIe )?(?:Gen ?[1-4]\b|x[1248]\b)|PCIe Gen ?[1-4] x[1248]\b|width x[1248]\b|link (?:is |was )?downgraded`,
	},
	{"midlink", "25gbe|40gbe|25 gbe|40 gbe|25g ethernet", `\b(?:25|40) ?(?:GbE|Gb?(?:it)? ?Ethernet)`},
	{"pinned", "pinned|bound to", `(?:pinned|bound) to (?:the )?(?:wrong|other|NUMA|node|socket|core|CPU)`},
	{
		"slowlink", "gbe|gigabit|gbit|ethernet",
		`\b(?:1|2\.5|5|10) ?(?:GbE|Gb(?:it)? ?Ethernet|GBASE)|\bgigabit\b|\b(?:1|10) ?Gb(?:it)?(?:/s|ps)? (?:link|network|switch|Ethernet)`,
	},
	{
		"traffic", "logging|telemetry|data loading|storage traffic|nfs|other traffic",
		`(?:logging|telemetry|data loading|storage|NFS|checkpoint\w*) (?:traffic )?.{0,40}(?:same (?:network|interface|nic|fabric))|other traffic|share(?:s|d)? .{0,20}(?:network|interface) with`,
	},
	{"oversub", "oversubscri", `oversubscri`},
	{"blocking", "cuda_launch_blocking", `CUDA_LAUNCH_BLOCKING`},
	{"init", "comminit|init_process_group|initiali", `ncclCommInit|init_process_group|initiali[sz]ation`},
}

func symptom(name, words, pattern string) seen {
	return told(Symptom, name, words, `(?i)`+strings.TrimPrefix(pattern, "(?i)"))
}

// told is a row that names what a sentence says.
func told(k Kind, name, words, pattern string) seen {
	return seen{
		kind: k, words: words, pattern: `(` + pattern + `)`, told: true,
		take: func([]string) ([]string, bool) { return []string{name}, true },
	}
}
