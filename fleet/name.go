package fleet

import (
	"errors"
	"fmt"
	"strings"
)

// MaxName bounds a node's name, as DNS does.
const MaxName = 253

// Name is a node's name: letters, digits, dots, dashes and underscores, as host
// names have them. It begins with a letter or a digit.
type Name string

// ParseName checks a name that came from somewhere else.
func ParseName(s string) (Name, error) {
	switch {
	case s == "":
		return "", errors.New("a node's name is empty")
	case len(s) > MaxName:
		return "", fmt.Errorf("a node's name has %d characters; at most %d are allowed", len(s), MaxName)
	}
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if letter || i > 0 && (c == '.' || c == '-' || c == '_') {
			continue
		}
		return "", fmt.Errorf("node name %q: character %d is %q; letters, digits, and after the first also . - _ are "+
			"allowed", s, i+1, c)
	}
	return Name(s), nil
}

// UnmarshalText reads a name and refuses what is none.
func (n *Name) UnmarshalText(text []byte) error {
	v, err := ParseName(string(text))
	if err == nil {
		*n = v
	}
	return err
}

// Token is the name as one token of a subject, where dots would separate.
func (n Name) Token() string { return strings.ReplaceAll(string(n), ".", "~") }

// Subjects. What begins with Log is kept in the stream, the rest passes by.
const (
	// Stream is the stream's name.
	Stream = "BUSBAR"
	// Log is the beginning of all that is kept.
	Log = "busbar.log."
	// HubLog is what the server itself has to say: orders, findings.
	HubLog = Log + "hub"
	// Beats and Doings are wildcards of what all nodes send in passing.
	Beats       = "busbar.beat.*"
	ProgressAll = "busbar.doing.*"
)

// LogOf is where a node's kept events go.
func LogOf(n Name) string { return Log + "node." + n.Token() }

// BeatOf is where a node says that it lives.
func BeatOf(n Name) string { return "busbar.beat." + n.Token() }

// ProgressOf is where a node says how far it is with a part.
func ProgressOf(n Name) string { return "busbar.doing." + n.Token() }

// PartOf is where a node is asked to do a part or to stop one; it answers with an Answer.
func PartOf(n Name) string { return "busbar.part." + n.Token() }

// OfSubject is the node that a subject of the functions above names, "" for the server's.
func OfSubject(subject string) (Name, error) {
	if subject == HubLog {
		return "", nil
	}
	i := strings.LastIndexByte(subject, '.')
	return ParseName(strings.ReplaceAll(subject[i+1:], "~", "."))
}
