package nccllog

import (
	"math"
	"path"
	"slices"
	"strings"
)

// Record is one message of NCCL.
type Record struct {
	At       Pos
	Host     string // "" where only the message was quoted
	PID, TID int
	Dev      int    // CUDA ordinal of the thread, not the rank; -1 unknown
	Level    string // INFO, WARN, TRACE, CALL
	Text     string
	Message  any // what an INFO record says; nil: not understood. See message.go

	glued bool        // something stands before the record on its line
	body  int         // bytes from behind the process and its device to the end of the line
	spare *Connection // one that nobody needs any more, whose memory may be used
}

// levels are the words after "NCCL ".
var levels = []string{"INFO", "WARN", "TRACE", "CALL"}

// records appends the records of a line to a list whose old ones are overwritten. Where newlines
// were lost, one record ends where the next begins.
func records(list []Record, line string, place Pos) []Record {
	begin, text := len(list), 0
	for at, level := marker(line, 0); at >= 0; at, level = marker(line, text) {
		if len(list) == cap(list) {
			list = slices.Grow(list, 1)
		}
		list = list[:len(list)+1]
		r := &list[len(list)-1]
		spare, _ := r.Message.(*Connection)
		*r = Record{At: place, Dev: -1, Level: level, spare: spare}
		start := r.prefix(line, text, at)
		if len(list)-begin > 1 {
			list[len(list)-2].Text = tidy(line[text:start])
		}
		text = at + len("NCCL ") + len(level)
	}
	if len(list) > begin {
		list[len(list)-1].Text = tidy(line[text:])
	}
	return list
}

// marker finds the next "NCCL INFO" and the like.
func marker(line string, from int) (int, string) {
	for from < len(line) {
		i := strings.Index(line[from:], "NCCL ")
		if i < 0 {
			return -1, ""
		}
		at := from + i
		rest := line[at+len("NCCL "):]
		for _, l := range levels {
			if strings.HasPrefix(rest, l) && (len(rest) == len(l) || rest[len(l)] == ' ') &&
				(at == 0 || line[at-1] == ' ' || line[at-1] == '\t') {
				return at, l
			}
		}
		from = at + len("NCCL ")
	}
	return -1, ""
}

// prefix reads backwards from a marker: function, source line, device, and
// host:pid:tid. It returns where the record begins; low is where the text of the
// record before begins, and nothing before it belongs to this one.
func (rec *Record) prefix(line string, low, at int) int {
	start, end := at, at
	rec.body = len(line) - at
	for range 6 {
		word, begin := wordBefore(line, low, end)
		if word == "" {
			break
		}
		switch {
		case word[0] == '(' && word[len(word)-1] == ')', isSource(word):
			rec.body = len(line) - begin
		case rec.Dev < 0 && word[0] == '[' && word[len(word)-1] == ']' && isDigits(word[1:len(word)-1]):
			rec.Dev = atoi(word[1 : len(word)-1])
		default:
			if host, pid, tid, ok := process(word); ok {
				rec.Host, rec.PID, rec.TID = host, pid, tid
				rec.glued = begin > low
				return rec.timestamp(line, low, begin)
			}
			return start
		}
		start, end = begin, begin
	}
	return start
}

// wordBefore returns the word that ends before end, after blanks.
func wordBefore(line string, low, end int) (string, int) {
	for end > low && (line[end-1] == ' ' || line[end-1] == '\t') {
		end--
	}
	begin := end
	for begin > low && line[begin-1] != ' ' && line[begin-1] != '\t' {
		begin--
	}
	return line[begin:end], begin
}

// inHost are the characters of hosts' names.
var inHost = func() (in [256]bool) {
	for _, c := range []byte("-._0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") {
		in[c] = true
	}
	return in
}()

// process splits "node7:123:456". The host is what the last two colons leave; what
// ran together with it ("x:12:node7", "[0]node7") is cut off.
func process(word string) (host string, pid, tid int, ok bool) {
	i := strings.LastIndexByte(word, ':')
	if i < 0 || !isDigits(word[i+1:]) {
		return "", 0, 0, false
	}
	j := strings.LastIndexByte(word[:i], ':')
	if j < 0 || !isDigits(word[j+1:i]) {
		return "", 0, 0, false
	}
	at := j
	for at > 0 && inHost[word[at-1]] {
		at--
	}
	host = word[at:j]
	if strings.HasPrefix(host, "-") { // no name begins so: a cell of a table, such as -1, ran into it
		host = strings.TrimLeft(host[1:], "0123456789")
	}
	if host == "" || len(host) > 255 {
		return "", 0, 0, false
	}
	return host, atoi(word[j+1 : i]), atoi(word[i+1:]), true
}

// timestamp reads "[2026-07-23 04:16:01] " before a record.
func (rec *Record) timestamp(line string, low, begin int) int {
	head := line[low:begin]
	if !strings.HasSuffix(head, "] ") {
		return begin
	}
	i := strings.LastIndexByte(head, '[')
	if i < 0 || len(head)-i > 64 {
		return begin
	}
	if strings.Count(head[i:], ":") >= 2 {
		rec.glued = i > 0
		return low + i
	}
	return begin
}

// isSource reports whether a word is a line of NCCL's source: "init.cc:82".
func isSource(word string) bool {
	i := strings.LastIndexByte(word, ':')
	if i < 0 || !isDigits(word[i+1:]) {
		return false
	}
	switch path.Ext(word[:i]) {
	case ".cc", ".h", ".cu", ".cpp", ".c":
		return true
	}
	return false
}

// tidy removes what surrounds a message: blanks, and Ray's labels, which stand
// at the end where newlines were lost.
func tidy(s string) string {
	s = strings.TrimSpace(s)
	for strings.HasSuffix(s, ")") {
		i := strings.LastIndexByte(s, '(')
		if i < 0 || !strings.Contains(s[i:], " pid=") {
			break
		}
		s = strings.TrimSpace(s[:i])
	}
	return s
}

func isDigits(s string) bool { return s != "" && len(s) <= 18 && allDigits(s) }

func allDigits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return true
}

// atoi reads digits that isDigits has seen; a number beyond int32 is no pid,
// device or line of anything.
func atoi(s string) (n int) {
	for i := range len(s) {
		n = n*10 + int(s[i]-'0')
	}
	if n > math.MaxInt32 {
		return 0
	}
	return n
}
