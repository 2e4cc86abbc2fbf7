package evidence

import "regexp/syntax"

const digits = "0123456789"

// blind reports a pattern to which all digits are alike: whether and where it matches a text does not depend on
// which digits the text has.
func blind(pattern string) bool {
	re, err := syntax.Parse(pattern, syntax.Perl)
	return err == nil && blindOf(re)
}

func blindOf(re *syntax.Regexp) bool {
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
		if !blindOf(sub) {
			return false
		}
	}
	return true
}
