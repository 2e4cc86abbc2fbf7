package evidence

import (
	"strings"
	"unicode/utf8"

	"busbar.dev/internal/lazyre"
)

// What is seen less often, or only tells something beside another line.
const (
	GIDInUse    Kind = "gid-in-use"    // class of the address in a completion's line
	TestRank    Kind = "test-rank"     // rank, host: nccl-tests' list of devices
	TestHeader  Kind = "test-header"   // nccl-tests began
	Launched    Kind = "launched"      // processes that a command starts
	BadOrdinal  Kind = "bad-ordinal"   // a GPU that is not there
	TooNew      Kind = "too-new"       // a GPU for which the library has no code
	NoFamily    Kind = "no-family"     // kind of address that the kernel does not offer
	IPCFailure  Kind = "ipc-failure"   // memory of another process could not be opened
	BARFull     Kind = "bar-full"      // memory of a GPU could not be mapped for a peer
	Throttled   Kind = "throttled"     // why a GPU runs slower
	ArpFull     Kind = "arp-full"      // the kernel's table of neighbours
	NoPorts     Kind = "no-ports"      // none left
	NoThreads   Kind = "no-threads"    // none left
	DriverMix   Kind = "driver-mix"    // driver and libraries do not fit
	NoLinkSpeed Kind = "no-link-speed" // a PCIe link of unknown speed
	CUMemFailed Kind = "cumem-failed"  // memory that CUDA's virtual allocator refused
)

// launchers start processes; processes is how they are told how many.
var (
	launchers = lazyre.New(`(?:mpirun|mpiexec|srun)\b`)
	processes = lazyre.New(`\s-(?:np|n|-ntasks)[ =](\d+)\b`)
)

// launched reads "mpirun -np 16 …": the number stands among a launcher's first
// arguments. One pattern for both would take a millisecond for a long command.
func launched(g []string) ([]string, bool) {
	for _, at := range launchers.FindAllStringIndex(g[0], -1) {
		rest := g[0][at[1]:]
		if m := processes.FindStringSubmatchIndex(rest); m != nil && utf8.RuneCountInString(rest[:m[0]]) <= 200 {
			return []string{rest[m[2]:m[3]]}, true
		}
	}
	return nil, false
}

// objects names the call behind an object that could not be made.
func objects(g []string) ([]string, bool) {
	call := map[string]string{
		"completion queue": "ibv_create_cq", "queue pair": "ibv_create_qp", "protection domain": "ibv_alloc_pd",
		"memory region": "ibv_reg_mr",
	}[strings.ToLower(g[0])]
	return []string{call, ""}, call != ""
}

// gidClass tells addresses of RoCE apart: link-local ones are not routed.
func gidClass(g []string) ([]string, bool) {
	switch low := strings.ToLower(g[0]); {
	case strings.HasPrefix(low, "fe80:"):
		return []string{"link-local"}, true
	case strings.HasPrefix(low, "::ffff:"):
		return []string{"ipv4"}, true
	}
	return []string{"global"}, true
}

// helpful are ways to say that a setting makes it work; the first group is what
// turns the sense around, the second the setting.
const (
	aSetting = `(NCCL_[A-Z0-9_]+(?: ?= ?[\w^.,/-]+)?)`
	noMore   = `(?:(not|n't|never|no longer|neither|even|still \w+)\s+)?`
)

// seenHelps is what people tell of settings that they tried.
func seenHelps() []seen {
	return []seen{
		{
			kind: Helps, words: "nccl_",
			pattern: `(?i)` + noMore +
				`\b(?:works?(?:ed)?|ok|fine|clean|pass(?:es)?|stable|solved|fixed|resolved|recovers?|recovered|runs|ran|succeeds?|gone|goes away|disappears?|only) (?:well |again |correctly |only )*(?:with|when|using|after|by|once|if|under)(?: (?:setting|exporting|adding|forcing|we set|i set|only))* ` + aSetting, take: helped, told: true,
		},
		{
			kind: Helps, words: "nccl_", pattern: `(?i)` + noMore + aSetting +
				`(?:,? (?:and|or|with) NCCL_\w+=\w+)*(?: (?:is|was|to \w+))*(?: set)?[:,]? (?:then |it |all |everything |the \w+ |this )*(?:works|worked|helps|helped|fix(?:es|ed)|solve[sd]|resolve[sd]|avoids|restores?|recovers?|raises?|improves?|makes it work|goes well|runs|passes|gives (?:the )?(?:full|optimal|good|expected)|optimal|no hang)\b`, take: helped, told: true,
		},
		{
			kind: Helps, words: "nccl_", pattern: `(?i)` + noMore + `\b(?:until|unless|without) (?:we set |setting )?` +
				aSetting, take: helped, told: true,
		},
		{
			kind: Helps, words: "nccl_", pattern: `(?i)` + noMore + aSetting +
				` ?\((?:workaround|fix|fixes|works|helps|ok|solution)\b`, take: helped, told: true,
		},
		{
			kind: Harmful, words: "removing|unsetting|unset |deleting|dropping",
			pattern: `(?i)()\b(?:removing|unsetting|unset|deleting|dropping) (?:the |of )?` + aSetting +
				`,? (?:and |then |it |seems |to |makes |made |the |job |everything |all |problem |issue ){0,6}(?:works?|worked|runs?|ran|fix(?:es|ed)?|solve[sd]?|resolve[sd]?|helps?|helped|recovers?|is fine|goes away)\b`, take: helped, told: true,
		},
		{
			kind: Harmful, words: "unset |remove |delete ",
			pattern: `()\b(?:works?|worked|runs?|fine|ok|helps|goes away) (?:again |well |only |fine )?(?:if|when|once|after) (?:i |we |you |I )?(?:unset|remove|removed|delete|deleted|do not set|don't set) (?:the )?([A-Z][A-Z0-9]*_[A-Z0-9_]+)`, take: helped, told: true,
		},
		{
			kind: Hurts, words: "nccl_",
			pattern: `(?i)()\b(?:removing|unsetting|deleting|dropping|without setting|not setting) (?:the )?` + aSetting,
			take:    helped, told: true,
		},
	}
}

// helped keeps the setting unless the sentence denies it.
func helped(g []string) ([]string, bool) {
	if g[0] != "" || g[1] == "" {
		return nil, false
	}
	return []string{strings.ReplaceAll(strings.ToLower(g[1]), " ", "")}, true
}

// model reports a short line that names hardware and little else, as "8x H100".
func model(text string) bool {
	return len(text) < 60 && (models.MatchString(text) || places.MatchString(text))
}

var models = lazyre.New(
	`^\s*(?:\d+ ?x ?\d* ?)?(?:NVIDIA |Tesla )?(?:RTX ?\d{4}|GTX ?\d{4}|MI\d{2,3}X?|G?[ABHVLTP]\d{1,3}0?0?[GS]?|DGX|HGX)\b`)

// places are networks and clouds that stand alone on a line.
var places = lazyre.New(
	`(?i)^\s*(?:kubernetes|k8s|slurm|docker|infiniband|roce(?: ?v2)?|efa|slingshot|aws|azure|gcp|[2-9] nodes|\d+ ?x ?\d+G(?:b/s|bps)?)\s*$`)
