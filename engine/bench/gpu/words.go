package gpu

import (
	"errors"
	"slices"
	"strings"
)

// SplitWords takes a command line apart as a shell does, as far as quotes go: spaces part words,
// quotes of both kinds and backslashes keep them together, and nothing else means anything.
func SplitWords(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	begun := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; c {
		case ' ', '\t', '\n', '\r':
			if begun {
				words = append(words, word.String())
				word.Reset()
				begun = false
			}
		case '\'':
			end := strings.IndexByte(line[i+1:], '\'')
			if end < 0 {
				return nil, errors.New("a ' without another")
			}
			word.WriteString(line[i+1 : i+1+end])
			i += end + 1
			begun = true
		case '"':
			n, err := quoted(&word, line[i+1:])
			if err != nil {
				return nil, err
			}
			i += n
			begun = true
		case '\\':
			if i++; i == len(line) {
				return nil, errors.New("a \\ with nothing after it")
			}
			word.WriteByte(line[i])
			begun = true
		default:
			word.WriteByte(c)
			begun = true
		}
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}

// quoted reads on after a ", to the next one; a backslash stands for itself but before what
// would mean something there.
func quoted(word *strings.Builder, rest string) (n int, err error) {
	for i := 0; i < len(rest); i++ {
		switch c := rest[i]; {
		case c == '"':
			return i + 1, nil
		case c == '\\' && i+1 < len(rest) && strings.IndexByte("\"\\$`", rest[i+1]) >= 0:
			i++
			word.WriteByte(rest[i])
		default:
			word.WriteByte(c)
		}
	}
	return 0, errors.New("a \" without another")
}

// SettingWords are settings as programs are given them: NAME=VALUE, in order.
func SettingWords(settings map[string]string) []string {
	var list []string
	for k, v := range settings {
		list = append(list, k+"="+v)
	}
	slices.Sort(list)
	return list
}
