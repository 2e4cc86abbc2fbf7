package joblog

import (
	"path"
	"strings"

	"busbar.dev/internal/lazyre"
)

var (
	// hostFile is the name of a file: of a host and of what one machine's kernel or tools say, in either order, or of a
	// word that names a machine wherever it stands (gpu017, node-3, dgx-a100-07).
	hostFile = lazyre.New(`(?i)^(?:` + toolWord + `[._-](` + plainHost + `)|(` + plainHost + `)[._-]` + toolWord +
		`|((?:node|gpu|host|dgx|hgx|nid|cn|compute|server)[a-z0-9-]*\d))(?:\.(?:txt|log|out|gz|bz2|xz|zst))*$`)
	notHost = lazyre.New(
		`(?i)^(?:rank|run|step|job|log|out|err|std|slurm|test|exp|try|part|task|epoch|attempt|train|old|new|v)[-._]?\d|^\D*$`)
	kernelAt = lazyre.
			New(`^(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d|\d{4}-\d\d-\d\dT\S{8,32}) ([A-Za-z0-9][A-Za-z0-9.-]{0,62}) kernel: `)
)

const (
	toolWord  = `(?:dmesg|kern|kernel|kmsg|journal|journalctl|messages|syslog|smi|nvidia[-_]smi|nvidia)`
	plainHost = `[a-z][a-z0-9.-]{0,62}?`
)

// HostOf is the host that a line of the kernel's log is of: as journalctl and syslog write it, else by the name of the
// file (dmesg.gpu017, gpu017-dmesg.txt, gpu017.log); "" is unknown. A name without the word of a tool has to look like
// a host's, and no number of a run is one.
func HostOf(file, line string) string {
	if m := kernelAt.FindStringSubmatch(line); m != nil {
		return m[1]
	}
	m := hostFile.FindStringSubmatch(path.Base(strings.ReplaceAll(file, "\\", "/")))
	if m == nil {
		return ""
	}
	if host := m[1] + m[2]; host != "" && notHost.MatchString(host) {
		return ""
	}
	return m[1] + m[2] + m[3]
}
