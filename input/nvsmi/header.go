package nvsmi

import (
	"cmp"
	"strings"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

// header is the line of column names.
type header struct {
	cols  []string
	at    map[string]int
	tails int // columns behind the classes
	// bad is the first name that appears twice, and over says that there are more
	// columns than a matrix may have.
	bad  string
	over bool
}

// tailNames are the columns behind the classes.
var tailNames = lazyre.New(`CPU ?Affinity|NUMA ?Affinity|GPU NUMA ID`)

// parseHeader reads a line of column names: GPUs first, then NICs, then the
// affinity columns. A row is none, because a class follows its name.
func parseHeader(text string) (header, bool) {
	if !startsWithGPU(text) {
		return header{}, false
	}
	words := headerWords(text)
	if len(words) == 0 {
		return header{}, false
	}
	if _, ok := lines.Numbered(words[0], "GPU"); !ok {
		return header{}, false
	}
	h := header{at: map[string]int{}}
	for i, w := range words {
		if isTailWord(w) {
			h.tails = len(tailNames.FindAllString(strings.Join(words[i:], " "), -1))
			break
		}
		if cellWord(w) != "" {
			return header{}, false
		}
		if !strings.ContainsAny(w, "0123456789") || !deviceWord.MatchString(w) {
			return header{}, false
		}
		if len(h.cols) == maxDevices {
			h.over = true
			break
		}
		name := strings.Clone(w)
		if _, twice := h.at[name]; twice {
			h.bad = cmp.Or(h.bad, name)
			// The column keeps its place, under a name that no row has.
			name = ""
		} else {
			h.at[name] = len(h.cols)
		}
		h.cols = append(h.cols, name)
	}
	return h, true
}

// startsWithGPU is the cheap part of the test.
func startsWithGPU(text string) bool {
	return strings.HasPrefix(strings.TrimLeft(text, " \t"), "GPU")
}

// headerWords cuts a header into words, also where it lost its white space
// ("GPU6CPU Affinity", "NUMA AffinityGPU NUMA ID").
func headerWords(text string) []string {
	text = strings.ReplaceAll(text, "Affinity", "Affinity ")
	var out []string
	for _, w := range strings.Fields(text) {
		for {
			// Cut before a later GPU or CPU that follows a digit.
			cut := glued(w)
			for _, stem := range []string{"GPU", "CPU", "NIC", "NUMA"} {
				if i := strings.Index(w[1:], stem); i >= 0 && w[i] >= '0' && w[i] <= '9' && (cut < 0 || i+1 < cut) {
					cut = i + 1
				}
			}
			if cut < 0 {
				break
			}
			out = append(out, w[:cut])
			w = w[cut:]
		}
		out = append(out, w)
		if len(out) > maxDevices+8 {
			break
		}
	}
	return out
}

// glued is where a name of another kind follows that of a GPU or a NIC without white space ("GPU7mlx5_0"); -1: nowhere.
func glued(w string) int {
	for _, stem := range []string{"GPU", "NIC"} {
		rest, ok := strings.CutPrefix(w, stem)
		name := strings.TrimLeft(rest, "0123456789")
		if ok && name != "" && name != rest && name[0] != '_' && name[0] != '-' && name[0] != '.' {
			return len(w) - len(name)
		}
	}
	return -1
}

func isTailWord(w string) bool {
	switch w {
	case "CPU", "CPUAffinity", "NUMA", "NUMAAffinity", "GPU", "Affinity":
		return true
	}
	return false
}

// deviceWord is a word that can be a device's name.
var deviceWord = lazyre.New(`^[A-Za-z][\w.-]{0,63}$`)

// maxFolds bounds the lines that a terminal can have made of one.
const maxFolds = 32

// continuesHeader reports whether a line right behind a header is its rest,
// which a terminal folded: no row has come, and it repeats no column.
func (st *state) continuesHeader(text string, num int) bool {
	if st.t.rows != nil || st.pend != nil || num != st.line+1 || st.folds >= maxFolds {
		return false
	}
	words := headerWords(text)
	for _, w := range words {
		if isTailWord(w) || w == "ID" {
			return true
		}
		_, known := st.t.head.at[w]
		if known || st.t.head.tails > 0 || cellWord(w) != "" || !deviceWord.MatchString(w) ||
			!strings.ContainsAny(w, "0123456789") {
			return false
		}
	}
	return len(words) > 0
}

// moreHeader adds the rest of a folded header.
func (st *state) moreHeader(text string) bool {
	h, ok := parseHeader(st.text + " " + text)
	if ok {
		st.text += " " + text
		st.folds++
		st.t.head = h
	}
	return ok
}
