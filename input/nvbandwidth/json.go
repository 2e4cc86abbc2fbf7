package nvbandwidth

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
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
		Host    string   `json:"Host"`
		Devices []string `json:"GPU Device list"`
		Cases   []struct {
			Name   string  `json:"name"`
			Title  string  `json:"bandwidth_description"`
			Matrix [][]any `json:"bandwidth_matrix"`
		} `json:"testcases"`
	} `json:"nvbandwidth"`
}

// readJSON reads the JSON form.
func (p *parser) readJSON(name string, r io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(r, maxJSON+1))
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(data) > maxJSON {
		return fmt.Errorf("%s: more than %d MiB of JSON; expected one report of %s", name, maxJSON>>20, format)
	}
	var doc document
	if err := json.NewDecoder(bytes.NewReader(data)).Decode(&doc); err != nil {
		return fmt.Errorf("%s: JSON of %s: %w; expected what its option -j writes", name, format, err)
	}
	p.host = doc.Main.Host
	for i, s := range doc.Main.Devices {
		s, named := strings.CutPrefix(s, "Device ")
		if _, ok := parseDevice(s); !ok && !named {
			s = fmt.Sprintf("%d: %s", i, s)
		}
		p.device(0, s, "")
	}
	for _, c := range doc.Main.Cases {
		if err := p.newTest(0, c.Name); err != nil {
			return err
		}
		if p.tests > 0 && len(c.Matrix) > 0 {
			p.matrixJSON(c.Title, c.Matrix)
		}
	}
	if p.tests == 0 {
		return fmt.Errorf("%s: JSON of %s without a test; expected \"testcases\" with matrices", name, format)
	}
	return nil
}

// matrixJSON reads the rows of one test. A test of several tables writes them
// all into one list under the last title; only the last table has that title.
func (p *parser) matrixJSON(text string, rows [][]any) {
	title, ok := parseTitle(text)
	n := len(rows[0])
	switch {
	case !ok:
		p.Warnf(0, "%q says not what its rows and columns are; left out", text)
		return
	case n == 0 || n > pairtable.MaxDevices || len(rows) > pairtable.MaxDevices:
		p.Warnf(0, "%q has %d rows and %d columns; left out", text, len(rows), n)
		return
	case title.row == title.col && len(rows) > n && len(rows)%n == 0:
		rows = rows[len(rows)-n:]
	}
	p.title = title
	p.Begin(text, 0)
	cols := make([]int, n)
	for i := range cols {
		cols[i] = i
	}
	p.Header("", cols)
	for i, cells := range rows {
		words := []string{strconv.Itoa(i)}
		for _, c := range cells {
			words = append(words, strings.TrimSpace(fmt.Sprint(c)))
		}
		if !p.Row(0, words) {
			p.Warnf(0, "%q: row %d is none of at most %d numbers; left out", text, i, n)
		}
	}
	p.end()
}
