package workload

import (
	"math"
	"strconv"
	"strings"

	"busbar.dev/internal/lazyre"
)

// Like is the model that a text names in its own way, as tables do: "Llama-3.1 405B",
// "meta-llama/Llama-3.1-8B-Instruct", "llama31_8b", "Qwen3 30B-A3B (MoE)"; nil where there is none. The longest name of
// the catalogue that stands at the beginning of one of its words is taken, unless the text states a size that is not
// the model's.
func Like(text string) *Model {
	if len(text) > 200 {
		return nil
	}
	if at := strings.LastIndexByte(text, '/'); at >= 0 && at < len(text)-1 {
		text = text[at+1:]
	}
	for _, dots := range []bool{true, false} { // 3.1 is written as 31 too
		for _, want := range endings(text) {
			best, length := -1, 0
			for i := range rows() {
				if n := len(rows()[i].Name); n > length && begins(want, rows()[i].Name, dots) {
					best, length = i, n
				}
			}
			if best < 0 {
				continue
			}
			if m := rows()[best].model(); sized(text, &m) {
				return &m
			}
		}
	}
	return nil
}

// endings are a text from each of its first words on.
func endings(text string) []string {
	list := []string{text}
	for i, r := range text {
		if len(list) < 4 && i > 0 && (r == '-' || r == ' ' || r == '_') {
			list = append(list, text[i+1:])
		}
	}
	return list
}

// begins reports whether a text begins with a name, whatever stands between letters and digits; dots between digits
// count where dots says so. A number does not go on behind it.
func begins(text, name string, dots bool) bool {
	text, name = strings.ToLower(text), strings.ToLower(name)
	at := 0
	next := func(s string, i int) int {
		for i < len(s) &&
			!(s[i] >= 'a' && s[i] <= 'z' || isDigit(s, i) || dots && s[i] == '.' && isDigit(s, i-1) && isDigit(s, i+1)) {
			i++
		}
		return i
	}
	for i := next(name, 0); i < len(name); i = next(name, i+1) {
		if at = next(text, at); at >= len(text) || text[at] != name[i] {
			return false
		}
		at++
	}
	return !isDigit(text, at) || !isDigit(text, at-1)
}

func isDigit(s string, i int) bool { return i >= 0 && i < len(s) && s[i] >= '0' && s[i] <= '9' }

var sizeIn = lazyre.New(`(?i)(^|[^a-z0-9.])(\d+(?:\.\d+)?)\s?(b|m|t)($|[^a-z0-9])`)

// sized reports that no size which a text states contradicts a model: 16B of "DeepSeek-V2-Lite 16B" does V2's 236B.
func sized(text string, m *Model) bool {
	found := sizeIn.FindStringSubmatch(text)
	if found == nil {
		return true
	}
	n, err := strconv.ParseFloat(found[2], 64)
	if err != nil || n <= 0 {
		return true
	}
	n *= map[string]float64{"m": 1e6, "b": 1e9, "t": 1e12}[strings.ToLower(found[3])]
	return math.Abs(math.Log(float64(m.Params())/n)) < 0.3
}
