package evidence

import (
	"encoding/binary"
	"regexp/syntax"
)

const digits = "0123456789"

// blank writes every digit of a text as 0.
func blank(buf []byte, text string) []byte {
	buf = append(buf[:0], text...)
	rest := buf
	for ; len(rest) >= 8; rest = rest[8:] { // eight bytes at a time
		v := binary.LittleEndian.Uint64(rest)
		t := v ^ 0x3030303030303030
		other := (t&0x7f7f7f7f7f7f7f7f + 0x7676767676767676 | t) & 0x8080808080808080 // above 9
		digit := (other ^ 0x8080808080808080) >> 7 * 0x0f
		binary.LittleEndian.PutUint64(rest, v&^digit)
	}
	for i, c := range rest {
		if c >= '0' && c <= '9' {
			rest[i] = '0'
		}
	}
	return buf
}

// blind reports a pattern to which all digits are alike: whether and where it matches a text does not depend on
// which digits the text has.
func blind(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && alike(re)
}

func alike(re *syntax.Regexp) bool {
	count := 0 // of the digits that it takes
	for i := 0; i+1 < len(re.Rune) && re.Op == syntax.OpCharClass; i += 2 {
		count += int(max(0, min(re.Rune[i+1], '9')-max(re.Rune[i], '0')+1))
	}
	if re.Op == syntax.OpLiteral {
		for _, r := range re.Rune {
			if r >= '0' && r <= '9' {
				return false
			}
		}
	}
	if count != 0 && count != len(digits) {
		return false
	}
	for _, sub := range re.Sub {
		if !alike(sub) {
			return false
		}
	}
	return true
}
