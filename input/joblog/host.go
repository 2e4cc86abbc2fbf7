package joblog

import (
	"path"
	"strings"

	"busbar.dev/internal/lazyre"
)

var (
	// toolWord is in the names of files that hold what one machine's kernel or tools say.
	toolWord = lazyre.
			New(`(?i)^(?:dmesg|kern|kernel|kmsg|journal|journalctl|messages|syslog|smi|nvidia|nvidia-smi|nvidia_smi)$`)
	// hostWord is a word that names a machine wherever it stands: gpu017, node-3, dgx-a100-07.
	hostWord = lazyre.New(`(?i)^(?:node|gpu|host|dgx|hgx|nid|cn|compute|server)[a-z0-9-]*\d$`)
	fileEnd  = lazyre.New(`(?i)\.(?:txt|log|out|gz|bz2|xz|zst)$`)
	kernelAt = lazyre.
			New(`^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,32}) ([A-Za-z0-9][A-Za-z0-9.-]{0,62}) kernel: `)
)

// HostOf is the host that a line of the kernel's log is of: as journalctl and syslog write it, else by the name of the
// file; "" is unknown.
func HostOf(file, line string) string {
	if m := kernelAt.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	return HostOfFile(file)
}

// HostOfFile is the host that a file's name tells: dmesg.gpu017, gpu017-dmesg.txt, gpu017.log; "" where it tells none.
// A name without the word of a tool has to look like a host's.
func HostOfFile(file string) string {
	base := path.Base(strings.ReplaceAll(file, "\\", "/"))
	for range 3 {
		base = fileEnd.ReplaceAllString(base, "")
	}
	if hostWord.MatchString(base) {
		return base
	}
	for _, split := range []string{".", "-", "_"} {
		first, rest, ok := strings.Cut(base, split)
		if ok && toolWord.MatchString(first) && isHost(rest) {
			return rest
		}
		if i := strings.LastIndex(base, split); i > 0 && toolWord.MatchString(base[i+1:]) && isHost(base[:i]) {
			return base[:i]
		}
	}
	return ""
}

// isHost reports a name with a letter and a digit that is no number of a run.
func isHost(s string) bool {
	return len(s) < 64 && plainHost.MatchString(s) && strings.ContainsAny(s, "0123456789") && !notHost.MatchString(s)
}

var (
	plainHost = lazyre.New(`^[A-Za-z][A-Za-z0-9.-]*$`)
	notHost   = lazyre.New(
		`(?i)^(?:rank|run|step|job|log|out|err|std|slurm|test|exp|try|part|task|epoch|attempt|train|old|new|v)[-._]?\d`)
)
