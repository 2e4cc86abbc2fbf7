package sqlite

import "strings"

// parseColumns reads the columns' names of a CREATE TABLE statement, and which of them is the row's id. Tables without
// row ids give none.
func parseColumns(sql string) (names []string, alias int) {
	sql = uncomment(sql)
	open, end := strings.IndexByte(sql, '('), strings.LastIndexByte(sql, ')')
	if open < 0 || end < open || strings.Contains(strings.ToUpper(sql[end:]), "WITHOUT") {
		return nil, -1
	}
	alias = -1
	for _, def := range split(sql[open+1 : end]) {
		name, rest := word(def)
		switch strings.ToUpper(name) {
		case "", "PRIMARY", "UNIQUE", "CHECK", "FOREIGN", "CONSTRAINT":
			continue
		}
		kind, rest := word(rest)
		if strings.EqualFold(kind, "INTEGER") && strings.Contains(strings.ToUpper(rest), "PRIMARY KEY") {
			alias = len(names)
		}
		names = append(names, strings.Trim(name, "\"`[]'"))
	}
	return names, alias
}

// split cuts definitions at the commas that stand in no brackets and no quotes.
func split(s string) []string {
	var list []string
	depth, from, quote := 0, 0, byte(0)
	for i := range len(s) {
		switch c := s[i]; {
		case quote != 0:
			if c == quote {
				quote = 0
			}
		case c == '\'' || c == '"' || c == '`':
			quote = c
		case c == '(':
			depth++
		case c == ')':
			depth--
		case c == ',' && depth == 0:
			list = append(list, s[from:i])
			from = i + 1
		}
	}
	return append(list, s[from:])
}

// uncomment takes out what stands behind two dashes.
func uncomment(s string) string {
	var b strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "--")
		b.WriteString(line)
		b.WriteByte(' ')
	}
	return b.String()
}

// word is the first word of a definition, and the rest with white space made one space.
func word(s string) (first, rest string) {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return "", ""
	}
	return fields[0], strings.Join(fields[1:], " ")
}
