package finding

import "fmt"

// Severity is how much a finding matters. A greater one matters more, so that
// severities compare with < and max.
type Severity int8

// Severities. A note is worth knowing and needs no action; a warning costs a job
// time; an error stops it or costs it half its time or more.
const (
	Note Severity = iota
	Warn
	Error
)

var severities = [...]string{Note: "note", Warn: "warn", Error: "error"}

// ParseSeverity reads note, warn or error.
func ParseSeverity(s string) (Severity, error) {
	for i, name := range severities {
		if s == name {
			return Severity(i), nil
		}
	}
	return Note, fmt.Errorf("severity %q; expected note, warn or error", s)
}

// String is note, warn or error.
func (s Severity) String() string {
	if s < 0 || int(s) >= len(severities) {
		return fmt.Sprintf("Severity(%d)", int8(s))
	}
	return severities[s]
}

// MarshalText writes note, warn or error.
func (s Severity) MarshalText() ([]byte, error) {
	if s < 0 || int(s) >= len(severities) {
		return nil, fmt.Errorf("severity %d; expected 0 to %d", int8(s), len(severities)-1)
	}
	return []byte(severities[s]), nil
}

// UnmarshalText reads what MarshalText writes. An empty text is a note: messages
// were stored before every finding had a severity.
func (s *Severity) UnmarshalText(text []byte) (err error) {
	if len(text) == 0 {
		*s = Note
		return nil
	}
	*s, err = ParseSeverity(string(text))
	return err
}
