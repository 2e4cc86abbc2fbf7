package evidence

import (
	"strconv"
	"strings"
)

// seenHost is what the kernel, containers, limits and tools about a machine print.
func seenHost() []seen {
	return []seen{
		{kind: ACSOn, words: "acsctl", take: acs},
		{
			kind: ACSOn, words: "acs_ctrl|acs ctrl", pattern: `(?i)acs[_ ]ctrl\D{0,6}0x([0-9a-f]*[1-9a-f][0-9a-f]*)`, take: none,
		},
		{
			kind: LinkDegraded, words: "lnksta",
			pattern: `LnkSta:\s*Speed ([\d.]+GT/s)( \(downgraded\))?,? Width (x\d+)( \(downgraded\))?`, take: degraded,
		},
		{kind: IommuSetting, words: "iommu=", pattern: `\b((?:intel_|amd_)?iommu)=(\w+)`, take: lowered},
		{
			kind: IommuMode, words: "default domain type|passthrough|dmar: iommu enabled",
			pattern: `(?i)(?:default domain type: (translated|passthrough)|dmar: iommu (enabled))`, take: iommuMode,
		},
		{
			kind: IommuFault, words: "io_page_fault|dmar: [dma|dmar: drhd|amd-vi: event logged|smmu",
			pattern: `(?i)(IO_PAGE_FAULT|DMAR: \[DMA|DMAR: DRHD: handling fault|AMD-Vi: Event logged|smmu.{0,40}fault)`,
			take:    none,
		},
		{kind: Peermem, words: "nvidia_peermem|nv_peer_mem", pattern: `(?:^|\s)(nvidia_peermem|nv_peer_mem)\s+\d+\s+(\d+)`},
		{
			kind: PeermemAbsent, words: "peermem|peer_mem|memory_peers",
			also:    "not |missing|no such|cannot |inactive|failed|nothing|no output|empty|without|neither",
			pattern: `(?i)(?:(?:peer_?mem|memory_peers)[\w/ |:-]{0,60}?(?:not (?:found|loaded|installed)|missing|no such file|not exist|cannot access|inactive|failed|prints nothing|shows nothing|no output|is empty|returns nothing)|(?:no such file|not found|cannot (?:access|find)|missing|without|could not insert|failed to (?:load|insert)).{0,60}(?:peermem|peer_mem|memory_peers)|neither nv_peer_mem,? n?or nvidia_peermem)`, take: none,
		},
		{
			kind: Memlock, words: "max locked memory|memlock|ulimit -l",
			pattern: `(?i)(?:max locked memory[^\n]{0,24}?|memlock[ =:]+|ulimit -l[ =:]+)\b(\d+|unlimited)\b`, take: memlock,
		},
		{
			kind: ShmSize, words: "/dev/shm",
			pattern: `(?:shm|tmpfs)\s+([\d.]+[KMGT]?)\s+[\d.]+[KMGT]?\s+[\d.]+[KMGT]?\s+\d+%\s+/dev/shm`, take: shmSize,
		},
		{kind: ShmSize, words: "--shm-size", pattern: `--shm-size[= ]([\d.]+[kmgtKMGT]?)b?\b`, take: shmSize},
		{
			kind: FabricManager, words: "fabricmanager|fabric manager|fabric-manager",
			pattern: `(?i)fabric ?-?manager.{0,100}?(inactive|failed|not running|dead|not loaded|could not be found|error|stopped|disabled|mismatch|not installed)`, take: lowered,
		},
		{
			kind: FabricManager, words: "not yet initialized|cuda_error_system_not_ready|error 802|cuda " +
				"802|cudaerrorsystemnotready|fabric state",
			pattern: `(?i)(system not yet initialized|SYSTEM_NOT_READY|SystemNotReady|(?:error|cuda) 802|fabric\s+state\s*:\s*(?:not started|in progress))`, take: lowered,
		},
		{kind: Xid, words: "xid", pattern: `(?i)\bXid\b(?: \(PCI:[0-9a-f:.]+\))?[:\s]+(\d+)`},
		{
			kind: Binding, words: "--bind-to|--cpu-bind|cpu_bind|--bind",
			pattern: `--(?:bind-to|cpu-bind)[= ](?:verbose,)?(\w+)`,
		},
		{
			kind: CPUSet, words: "cpus_allowed_list|affinity list|affinity mask",
			pattern: `(?i)(?:cpus_allowed_list|affinity list)\b.{0,20}?[:\s](\d[\d,-]*)\s*$`,
		},
		{
			kind: Firewall, words: "ufw|firewalld|iptables|security group|nftables",
			pattern: `(?i)(ufw|firewalld|iptables|nftables|security group).{0,80}?(active|running|drop|reject|block|deny|enabled)`, take: lowered,
		},
		{
			kind: GPULost, words: "uncorrectable|gpu is lost|fallen off the bus|hardware stack error",
			pattern: `(?i)(uncorrectable (?:NVLink|ECC) error|GPU is lost|fallen off the bus|hardware stack error)`,
			take:    lowered,
		},
		{
			kind: ShmAbsent, words: "shared memory segment|/dev/shm/nccl-",
			pattern: `(?i)(?:attaching to|open\w*) shared memory segment.{0,120}no such file|/dev/shm/nccl- .{0,60}no such file`,
			take:    none,
		},
		{
			kind: NumaBalancing, words: "numa auto balancing enabled|numa_balancing",
			pattern: `(?i)NUMA auto balancing enabled|kernel\.numa_balancing ?= ?[1-9]`, take: none,
		},
		{kind: Pages, words: "migrate_cma|pin_user_pages|cma pageblocks", take: none},
		{
			kind: HostMemory, words: "oom-kill|out of memory: kill|killed process|oomkilled|oom_reaper",
			pattern: `(?i)oom-kill|out of memory: kill|killed process \d+|OOMKilled|oom_reaper: reaped`, take: none,
		},
	}
}

// acs lists the bits that a bridge has set. Those that redirect send traffic
// between two devices below a switch up to the root complex.
func acs(g []string) ([]string, bool) {
	_, rest, _ := strings.Cut(g[0], "ACSCtl")
	var set []string
	for _, f := range strings.Fields(rest) {
		if bit, ok := strings.CutSuffix(f, "+"); ok && len(bit) < 20 {
			set = append(set, bit)
		}
	}
	return []string{strings.Join(set, " ")}, len(set) > 0
}

func degraded(g []string) ([]string, bool) {
	return []string{g[0], g[2]}, g[1] != "" || g[3] != ""
}

func iommuMode(g []string) ([]string, bool) {
	if strings.EqualFold(g[0], "passthrough") {
		return []string{"passthrough"}, true
	}
	return []string{"translated"}, true
}

// memlock gives the limit in KiB.
func memlock(g []string) ([]string, bool) { return []string{strings.ToLower(g[0])}, true }

// shmSize gives a size in MiB.
func shmSize(g []string) ([]string, bool) {
	s := strings.ToUpper(g[0])
	scale := 1.0 / (1 << 20)
	switch s[len(s)-1] {
	case 'K':
		scale, s = 1.0/1024, s[:len(s)-1]
	case 'M':
		scale, s = 1, s[:len(s)-1]
	case 'G':
		scale, s = 1024, s[:len(s)-1]
	case 'T':
		scale, s = 1<<20, s[:len(s)-1]
	default:
		if len(s) <= 7 { // df without -h counts blocks of 1 KiB
			scale = 1.0 / 1024
		}
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil {
		return nil, false
	}
	return []string{strconv.Itoa(int(v * scale))}, true
}

// shmFailure reports lines in which shared memory could not be had.
func shmFailure(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	if strings.Contains(low, "no such file") || strings.Contains(low, "(size 0)") {
		return nil, false // it is not there for this process; see ShmAbsent
	}
	for _, w := range []string{
		"fail", "error", "no space left", "could not", "cannot", "insufficient", "too small", "out of shared",
	} {
		if strings.Contains(low, w) {
			if strings.Contains(low, "unlink") {
				return nil, false // clearing up after another failure
			}
			return nil, true
		}
	}
	// A segment's name with its size is printed only when it could not be made.
	return nil, strings.Contains(low, "nccl-shm-") && strings.Contains(low, "(size ")
}

// nvls reports failures of multicast over NVLink switches.
func nvls(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	if !strings.Contains(low, "nvls") && !strings.Contains(low, "nvlink sharp") {
		return nil, false
	}
	for _, w := range []string{"fail", "warn", "error", "invalid"} {
		if strings.Contains(low, w) {
			_, text, _ := strings.Cut(low, "'")
			text, _, _ = strings.Cut(text, "'")
			return []string{text}, true
		}
	}
	return nil, false
}

// connectReasons are why a connection was not made.
var connectReasons = []struct{ words, name string }{
	{"connection refused", "refused"},
	{"no route to host", "unreachable"},
	{"network is unreachable", "unreachable"},
	{"host is unreachable", "unreachable"},
	{"connection timed out", "timeout"},
	{"connect timed out", "timeout"},
	{"software caused connection abort", "abort"},
	{"connection abort", "abort"},
	{"exceeded retries", "retries"},
	{"exceeded error retry", "retries"},
	{"failed to connect", "failed"},
	{"connect aborted", "abort"},
}

// connectError names why a connection was not made; one that is tried again is
// not an error yet.
func connectError(g []string) ([]string, bool) {
	low := strings.ToLower(g[0])
	if strings.Contains(low, "client socket has failed") && strings.Contains(low, "refused") {
		return nil, false // tried again: the other side has not started yet
	}
	if strings.Contains(low, "retrying") && !strings.Contains(low, "exceeded") || strings.Contains(low, "ibv_") {
		return nil, false
	}
	if !strings.Contains(low, "connect") && !strings.Contains(low, "socket") {
		return nil, false
	}
	for _, r := range connectReasons {
		if strings.Contains(low, r.words) {
			return []string{r.name}, true
		}
	}
	return nil, false
}
