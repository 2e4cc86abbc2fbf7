package evidence

import (
	"encoding/json"
	"strings"

	"busbar/input/nccllog"
	"busbar/internal/lines"
)

// unwrap gives the text that a container's runtime wrapped as JSON, one line an
// object: {"log":"…\n","stream":"stdout","time":"…"}.
func unwrap(text string) string {
	if !strings.HasPrefix(text, `{"log":"`) {
		return text
	}
	var line struct {
		Log string `json:"log"`
	}
	if json.Unmarshal([]byte(text), &line) != nil {
		return text
	}
	return lines.StripANSI(strings.TrimRight(line.Log, "\r\n"))
}

// speaker is who printed a line, as far as it says: the host of a record of NCCL,
// and the rank that a launcher wrote in front.
func speaker(text string) (host string, rank int) {
	rank = label(text)
	if !strings.Contains(text, "NCCL ") {
		return "", rank
	}
	for rec := range nccllog.Records(lines.Bare(text)) {
		return rec.Host, rank
	}
	return "", rank
}

// label reads the rank that launchers write in front of a line: "[rank3]:",
// "[default3]:", "[1,3]<stdout>:", "3: ".
func label(text string) int {
	t := strings.TrimLeft(text, " \t")
	if t == "" {
		return -1
	}
	if t[0] != '[' {
		n, rest, ok := strings.Cut(t, ": ")
		if ok && rest != "" && len(n) <= 7 {
			return atoi(n)
		}
		return -1
	}
	inner, _, ok := strings.Cut(t[1:], "]")
	if !ok || len(inner) > 16 {
		return -1
	}
	for _, word := range []string{"rank", "default", "Rank "} {
		if n, ok := strings.CutPrefix(inner, word); ok {
			return atoi(n)
		}
	}
	if _, n, ok := strings.Cut(inner, ","); ok {
		return atoi(n)
	}
	return -1
}
