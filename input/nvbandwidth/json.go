package nvbandwidth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"busbar.dev/input/internal/pairtable"
)

// isJSON reports whether a text begins as the tool's -j output does.
func isJSON(head []byte) bool {
	head = bytes.TrimLeft(head, " \t\r\n")
	return len(head) > 0 && head[0] == '{' && bytes.Contains(head, []byte(`"nvbandwidth"`))
}

// document is the tool's JSON, as far as we read it.
type document struct {
	Main struct {
		Version string   `json:"version"`
		Git     string   `json:"git_version"`
		Runtime any      `json:"CUDA Runtime Version"`
		CUDA    any      `json:"CUDA Driver Version"`
		Driver  any      `json:"Driver Version"`
		Host    string   `json:"Host"`
		Devices []string `json:"GPU Device list"`
		Cases   []struct {
			Name   string  `json:"name"`
			Status string  `json:"status"`
			Title  string  `json:"bandwidth_description"`
			Matrix [][]any `json:"bandwidth_matrix"`
			Sum    any     `json:"sum"`
		} `json:"testcases"`
	} `json:"nvbandwidth"`
}

// readJSON reads the JSON form.
func readJSON(name string, r io.Reader) (*Result, error) {
	data, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxJSON {
		return nil, fmt.Errorf("%s: more than %d MiB of JSON; expected one report of %s", name, maxJSON>>20, Format)
	}
	var doc document
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
		return nil, fmt.Errorf("%s: JSON of %s: %w; expected what its option -j writes", name, Format, err)
	}
	in := &doc.Main
	p := parser{name: name, res: &Result{
		Version: in.Version, Git: in.Git, Host: in.Host,
		Runtime: text(in.Runtime), CUDA: text(in.CUDA), Driver: text(in.Driver),
	}}
	for i, s := range in.Devices {
		if !strings.HasPrefix(s, "Device ") {
			if _, ok := parseDevice(s); !ok {
				s = fmt.Sprintf("%d: %s", i, s)
			}
			s = "Device " + s
		}
		p.device(0, s, "")
	}
	for _, c := range in.Cases {
		if err := p.test(0, c.Name); err != nil {
			return nil, err
		}
		if len(p.res.Tests) == 0 || len(c.Matrix) == 0 {
			continue
		}
		test := &p.res.Tests[len(p.res.Tests)-1]
		test.Status = c.Status
		if m, ok := p.matrixJSON(c.Title, c.Matrix); ok {
			if v, ok := pairtable.Value(text(c.Sum)); ok {
				m.Sum = v
			}
			test.Matrices = append(test.Matrices, m)
		}
	}
	if len(p.res.Tests) == 0 {
		return nil, fmt.Errorf("%s: JSON of %s without a test; expected \"testcases\" with matrices", name, Format)
	}
	return p.res, nil
}

// matrixJSON reads the rows of one test. A test of several tables writes them
// all into one list under the last title; only the last table has that title.
func (p *parser) matrixJSON(title string, rows [][]any) (Matrix, bool) {
	m, ok := parseTitle(title, 0)
	if !ok {
		p.warnf(0, "%q says not what its rows and columns are; left out", title)
		return m, false
	}
	n := len(rows[0])
	if n == 0 || n > pairtable.MaxDevices || len(rows) > pairtable.MaxDevices {
		p.warnf(0, "%q has %d rows and %d columns; left out", title, len(rows), n)
		return m, false
	}
	if m.Row == m.Col && len(rows) > n && len(rows)%n == 0 {
		rows = rows[len(rows)-n:]
	}
	for i := range n {
		m.Cols = append(m.Cols, i)
	}
	for i, cells := range rows {
		row := Row{Index: i}
		for _, c := range cells[:min(n, len(cells))] {
			v, ok := pairtable.Value(text(c))
			if !ok {
				p.warnf(0, "%q: cell %v is no number; row %d left out", title, c, i)
				row.Values = nil
				break
			}
			row.Values = append(row.Values, v)
		}
		if len(row.Values) > 0 {
			m.Rows = append(m.Rows, row)
		}
	}
	return m, len(m.Rows) > 0
}

// text turns a value that some versions write as a string and others as a
// number into a string.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(v)
	}
	return fmt.Sprint(v)
}
