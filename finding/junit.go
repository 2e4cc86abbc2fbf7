package finding

import "encoding/xml"

// Suite is what was looked at as JUnit XML has it, for systems that show tests.
type Suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Skipped  int      `xml:"skipped,attr"`
	Time     string   `xml:"time,attr,omitempty"` // seconds
	Cases    []Case   `xml:"testcase"`
}

// Case is one thing that was looked at, and why it fails; nil where it does not.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure *Failure `xml:"failure"`
	Skipped *Skipped `xml:"skipped"`
}

// Skipped is what of a case that does not fail was not looked at.
type Skipped struct {
	Message string `xml:"message,attr"`
}

// Failure is why a case fails.
type Failure struct {
	Message string `xml:"message,attr"`
	Type    string `xml:"type,attr,omitempty"`
	Text    string `xml:",chardata"`
}

// XML counts the cases and writes them.
func (s *Suite) XML() ([]byte, error) {
	s.Tests = len(s.Cases)
	for _, c := range s.Cases {
		if c.Failure != nil {
			s.Failures++
		}
		if c.Skipped != nil {
			s.Skipped++
		}
	}
	data, err := xml.MarshalIndent(s, "", " ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}
