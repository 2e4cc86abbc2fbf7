package hardware

import (
	_ "embed"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"busbar.dev/cluster"
	"busbar.dev/internal/csvtable"
	"busbar.dev/internal/lazyre"
	"busbar.dev/unit"
)

// wordRow is a row of words.csv: a pattern, and what it says of which field.
type wordRow struct {
	ID      string `csv:"id"`
	Field   string `csv:"field"`
	Value   string `csv:"value,optional"`
	Pattern string `csv:"pattern"`
	re      *regexp.Regexp
}

//go:embed words.csv
var wordTable string

var wordRows = sync.OnceValue(func() []wordRow {
	rows := csvtable.Must[wordRow]("hardware/words.csv", wordTable)
	for i := range rows {
		rows[i].re = regexp.MustCompile("(?i)" + rows[i].Pattern)
	}
	return rows
})

// Read fills what words say of a machine where nothing says it yet: those of a publication, a ticket or a person. rack
// is whether the GPUs of a rack of trays are one NVLink domain, unread what nothing was made of.
func (s *Spec) Read(text string) (rack cluster.Tri, unread []string) {
	said := map[string]string{}
	text = s.readBuses(text)
	for _, row := range wordRows() {
		m := row.re.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		if _, known := said[row.Field]; !known {
			said[row.Field] = strings.ToLower(string(row.re.ExpandString(nil, row.Value, text, m)))
		}
		text = row.re.ReplaceAllString(text, ";")
	}
	number := func(field string) int {
		n, _ := strconv.Atoi(said[field])
		return n
	}
	tri := func(field string, to *cluster.Tri) {
		if said[field] != "" && *to == cluster.Maybe {
			*to = map[string]cluster.Tri{"yes": cluster.Yes, "no": cluster.No}[said[field]]
		}
	}
	for field, to := range map[string]*int{"behind": &s.Behind, "sockets": &s.Sockets, "slots": &s.Slots, "of": &s.Of} {
		if *to == 0 {
			*to = number(field)
		}
	}
	if said["behind"] == "all" {
		s.Behind = s.Count
	}
	tri("peers", &s.Peers)
	tri("gdr", &s.GDR)
	tri("rack", &rack)
	if said["join"] == "" && said["slots"] != "" { // PCIe by its generation
		said["join"] = "none"
	}
	if s.Join == "" {
		s.Join = said["join"]
	}
	if s.Kind == "" {
		s.Kind = cluster.NetKind(said["kind"])
	}
	if s.Port == 0 {
		s.Port = unit.Rate(number("port")) * unit.Gbps
	}
	return rack, phrases(text)
}

var (
	buses     = lazyre.New(`(?i)\b(?:gpus |bus |at )+([0-9a-f]{2}(?::00)?(?:(?:, ?| and |,)[0-9a-f]{2}(?::00)?)*)\b`)
	busNumber = lazyre.New(`(?i)\b[0-9a-f]{2}\b`)
)

// readBuses reads the numbers of GPUs' buses: those of the second socket begin at 80, and neighbours share a PCIe
// switch. It returns the text without them.
func (s *Spec) readBuses(text string) string {
	m := buses.FindStringSubmatch(text)
	if m == nil {
		return text
	}
	var list []int64
	for _, word := range busNumber.FindAllString(strings.ReplaceAll(m[1], ":00", ""), -1) {
		n, _ := strconv.ParseInt(word, 16, 32)
		list = append(list, n)
	}
	slices.Sort(list)
	if len(list) < 2 {
		return text
	}
	if s.Sockets == 0 {
		s.Sockets = 1
		if list[0] < 0x80 && list[len(list)-1] >= 0x80 {
			s.Sockets = 2
		}
	}
	if s.Behind == 0 && list[1] == list[0]+1 {
		s.Behind = 2
	}
	return strings.Replace(text, m[0], ";", 1)
}

// fillers are words that say nothing by themselves.
var fillers = lazyre.New(
	`(?i)^(?:and|at|of|the|on|in|with|between|by|per|node|nodes|gpu|gpus|both|all|others?|racks?|single|each|not|stated|sys|x16|[\d\s/x.-]*)$`)

// phrases are what is left of a text, without brackets and fillers.
func phrases(text string) (list []string) {
	for _, part := range strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(";,()", r) }) {
		words := slices.DeleteFunc(strings.Fields(part), func(w string) bool { return fillers.MatchString(w) })
		if len(words) > 0 {
			list = append(list, strings.Join(words, " "))
		}
	}
	return list
}
