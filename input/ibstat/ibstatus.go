package ibstat

import (
	"io"
	"strconv"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/input/internal/board"
	"busbar.dev/internal/lines"
)

// MatchStatus reports whether ibstatus' output is somewhere in the text.
func MatchStatus(data []byte) bool {
	return lines.Find(data, "Infiniband device '", func(line string) bool {
		name, _ := statusLine(line)
		return name != ""
	})
}

// statusLine reads "Infiniband device 'mlx4_0' port 1 status:".
func statusLine(line string) (name string, port int) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), "Infiniband device ")
	if !ok {
		return "", 0
	}
	name, rest = inQuotes(rest)
	num, ok := strings.CutPrefix(rest, " port ")
	num, end := strings.CutSuffix(num, " status:")
	port, err := strconv.Atoi(num)
	if !ok || !end || err != nil || port < 1 || port > maxPorts {
		return "", 0
	}
	return name, port
}

// ReadStatus reads ibstatus' output: a block for each port.
func ReadStatus(name string, r io.Reader) (*cluster.Fragment, error) {
	const format = "ibstatus"
	h := hosts{format: format, source: name}
	var c *card
	var p *cluster.Port
	err := h.read(r, func(line string, at int) {
		if label, num := statusLine(line); label != "" {
			h.addCard(c)
			c = &card{label: label, line: at}
			p = c.addPort(num)
			return
		}
		if key, value, ok := keyValue(line); ok && p != nil {
			statusPort(p, key, value, format)
		}
	})
	if err != nil {
		return nil, err
	}
	h.addCard(c)
	return h.fragment("no ports; expected ibstatus' output, such as Infiniband device 'mlx5_0' port 1 status:; give the " +
		"whole output of ibstatus")
}

func statusPort(p *cluster.Port, key, value, source string) {
	switch key {
	case "default gid":
		p.GUID = board.PortGUID(value)
	case "base lid":
		p.LID = lid(value)
	case "state":
		p.State = state(value)
	case "rate":
		r, speed := board.PortRate(value)
		p.Rate, p.Speed = rate(r, source), speed
	case "link_layer":
		p.Layer = layer(value)
	}
}
