package ibstat

import (
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lines"
)

// Match reports whether ibstat's output is somewhere in the text.
func Match(data []byte) bool {
	return lines.Find(data, " '", func(line string) bool { return caLine(line) != "" })
}

// caLine returns the adapter in CA 'mlx5_0', or in CA: 'mlx5_0' when ibstat was
// asked for one port.
func caLine(line string) string {
	line = strings.TrimSpace(line)
	for _, word := range []string{"CA ", "CA: ", "iWARP RNIC ", "iWARP RNIC: "} {
		if rest, ok := strings.CutPrefix(line, word); ok {
			if name, rest := inQuotes(rest); rest == "" {
				return name
			}
		}
	}
	return ""
}

// Read reads ibstat's output.
func Read(name string, r io.Reader) (*cluster.Fragment, error) {
	const format = "ibstat"
	h := hosts{format: format, source: name}
	var c *card
	var p *cluster.Port
	err := h.read(r, func(line string, at int) {
		if label := caLine(line); label != "" {
			h.addCard(c)
			c, p = &card{label: label, line: at}, nil
			return
		}
		key, value, ok := keyValue(line)
		if c == nil || !ok {
			return
		}
		if num, ok := strings.CutPrefix(key, "port "); ok && value == "" {
			n, _ := strconv.Atoi(num)
			p = c.addPort(n)
			return
		}
		if !c.statCard(key, value) && p != nil {
			statPort(p, key, value, format)
		}
	})
	if err != nil {
		return nil, err
	}
	h.addCard(c)
	return h.fragment("no adapters; expected ibstat's output, such as CA 'mlx5_0' with its ports; give the whole output " +
		"of ibstat")
}

// statCard takes a line about the adapter as a whole.
func (c *card) statCard(key, value string) bool {
	switch key {
	case "ca type", "iwarp rnic type":
		c.model = word(value)
	case "number of ports":
		c.stated, _ = strconv.Atoi(value)
	case "firmware version":
		c.firmware = word(value)
	case "node guid":
		c.guid = board.GUID(value)
	default:
		return false
	}
	return true
}

func statPort(p *cluster.Port, key, value, source string) {
	switch key {
	case "state":
		p.State = state(value)
	case "rate":
		r, _ := board.PortRate(value)
		p.Rate = rate(r, source)
	case "base lid":
		p.LID = lid(value)
	case "port guid":
		p.GUID = board.GUID(value)
	case "link layer":
		p.Layer = layer(value)
	}
}
