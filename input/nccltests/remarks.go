package nccltests

import (
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/internal/lazyre"
)

// remarks are what a text says for the tables that follow, unless they say it themselves.
type remarks struct {
	program string  // last program of nccl-tests on a command line
	serial  int     // and its -g
	world   int     // ranks
	layout  shape   // of a command line
	release string  // of NCCL
	gpu     string  // its model
	payload float64 // bytes of every call
	dtype   string
}

// remarked are the lines that say something, each with words that it holds. A text says of what it sends: BF16
// precision (1.32 GB), or: 1.32 GB of bf16.
var remarked = []struct {
	words string
	re    *lazyre.Regexp
	keep  func(r *remarks, m []string)
}{
	{
		"", lazyre.New(`(?i)^[#\s]*world size\s*[:=]\s*(\d{1,7})\b`),
		func(r *remarks, m []string) { r.world, _ = strconv.Atoi(m[1]) },
	},
	{
		"--nproc",
		lazyre.New(`(?:--nnodes[= ](\S{1,5})\b.*)?--nproc[-_]per[-_]node[= ](\d{1,4})\b(?:.*--nnodes[= ](\S{1,5}))?`),
		func(r *remarks, m []string) {
			r.layout.nodes, _ = strconv.Atoi(cmp.Or(m[1], m[3], "1")) // none where a variable says it
			r.layout.per, _ = strconv.Atoi(m[2])
			r.world = r.layout.ranks()
		},
	},
	{"NCCL version", namedRelease, keepRelease},
	{"nccl=(", namedRelease, keepRelease},
	{"_CudaDeviceProperties(", lazyre.New(`\bname='([^']{1,80})'`), func(r *remarks, m []string) { r.gpu = m[1] }},
	{
		" GB", lazyre.New(`(?i)\bbf16 precision \(([\d.]{1,9}) GB\)|([\d.]{1,9}) GB of bf16\b`),
		func(r *remarks, m []string) { r.payload, r.dtype = 1e9*figureOf(m[1]+m[2]), "bfloat16" },
	},
}

var (
	namedRelease = lazyre.New(`(?i)\bnccl(?: version\s*:?\s*|=)\(?(\d+)[.,] ?(\d+)[.,] ?(\d+)`)
	perThread    = lazyre.New(` -(?:g|-ngpus)[ =]?(\d{1,4})\b`)
)

func keepRelease(r *remarks, m []string) { r.release = m[1] + "." + m[2] + "." + m[3] }

// remark reads a line; false where it says nothing.
func (r *remarks) remark(text string) (found bool) {
	for i := range remarked {
		x := &remarked[i]
		if !strings.Contains(text, x.words) {
			continue
		}
		if m := x.re.FindStringSubmatch(text); m != nil {
			x.keep(r, m)
			found = true
		}
	}
	return found
}

// commanded reads a command line of nccl-tests. Without a launcher it is one process, on one node.
func (r *remarks) commanded(text string) {
	for word := range strings.FieldsFuncSeq(text, func(c rune) bool { return strings.ContainsRune(" /`\"'=,[]", c) }) {
		if opOf(word) != coll.None {
			r.program = word
		}
	}
	r.serial, _ = strconv.Atoi(perThread.FindStringSubmatch(text + " -g 1")[1])
	if r.layout = (shape{1, r.serial}); strings.Contains(text, "run ") { // mpirun, srun
		r.layout = shape{}
	}
}
