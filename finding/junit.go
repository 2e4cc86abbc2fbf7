package finding

import "encoding/xml"

// Suite is what was looked at as JUnit XML has it, for systems that show tests.
type Suite struct {
	XMLName  xml.Name `xml:"testsuite"`
	Name     string   `xml:"name,attr"`
	Tests    int      `xml:"tests,attr"`
	Failures int      `xml:"failures,attr"`
	Time     string   `xml:"time,attr,omitempty"` // seconds
	Cases    []Case   `xml:"testcase"`
}

// Case is one thing that was looked at, and why it fails; nil where it does not.
type Case struct {
	Name    string   `xml:"name,attr"`
	Class   string   `xml:"classname,attr"`
	Failure *Failure `xml:"failure"`
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
	}
	data, err := xml.MarshalIndent(s, "", " ")
	return append([]byte(xml.Header), append(data, '\n')...), err
}
