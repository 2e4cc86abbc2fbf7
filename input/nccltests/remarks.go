package nccltests

import (
	"cmp"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/input/internal/num"
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
}{
	{"", lazyre.New(`(?i)^[#\s]*world size\s*[:=]\s*(?P<world>\d{1,7})\b`)},
	{"--nproc", lazyre.New(`(?:--nnodes[= ](?P<nodes>\S{1,5})\b.*)?--nproc[-_]per[-_]node[= ](?P<per>\d{1,4})\b` +
		`(?:.*--nnodes[= ](?P<after>\S{1,5}))?`)},
	{"NCCL version", namedRelease},
	{"nccl=(", namedRelease},
	{"_CudaDeviceProperties(", lazyre.New(`\bname='(?P<gpu>[^']{1,80})'`)},
	{" GB", lazyre.New(`(?i)\bbf16 precision \((?P<sent>[\d.]{1,9}) GB\)|(?P<of>[\d.]{1,9}) GB of bf16\b`)},
}

var (
	namedRelease = lazyre.New(
		`(?i)\bnccl(?: version\s*:?\s*|=)\(?(?P<major>\d+)[.,] ?(?P<minor>\d+)[.,] ?(?P<patch>\d+)`)
	perThread = lazyre.New(` -(?:g|-ngpus)[ =]?(\d{1,4})\b`)
)

// remark reads a line; false where it says nothing.
func (r *remarks) remark(text string) (found bool) {
	for i := range remarked {
		x := &remarked[i]
		if !strings.Contains(text, x.words) {
			continue
		}
		g := x.re.Groups(text)
		found = found || g != nil
		if g["per"] != "" {
			r.layout = shape{num.Int(cmp.Or(g["nodes"], g["after"], "1")), num.Int(g["per"])} // none where a variable says it
			r.world = r.layout.ranks()
		}
		r.world = cmp.Or(num.Int(g["world"]), r.world)
		if n := g["major"]; n != "" {
			r.release = n + "." + g["minor"] + "." + g["patch"]
		}
		r.gpu = cmp.Or(g["gpu"], r.gpu)
		if size := g["sent"] + g["of"]; size != "" {
			r.payload, r.dtype = 1e9*figureOf(size), "bfloat16"
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
	r.serial = num.Int(perThread.FindStringSubmatch(text + " -g 1")[1])
	if r.layout = (shape{1, r.serial}); strings.Contains(text, "run ") { // mpirun, srun
		r.layout = shape{}
	}
}
