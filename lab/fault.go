package lab

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Fault is something that is wrong on purpose.
type Fault struct {
	Kind  string `json:"kind"`  // link or node
	Where string `json:"where"` // node0:mlx5_0, or node0
	What  string `json:"what"`  // rate, loss, down, flap; pause, kill
	// Share is what is left of the rate, or the part of the packets that is lost.
	Share float64       `json:"share,omitempty"`
	Every time.Duration `json:"every_ns,omitempty"` // of flap: half its period
}

func (f Fault) String() string {
	s := f.Kind + " " + f.Where + " " + f.What
	switch f.What {
	case "rate", "loss":
		return s + "=" + strconv.FormatFloat(f.Share*100, 'g', 6, 64) + "%"
	case "flap":
		return s + "=" + f.Every.String()
	}
	return s
}

// ParseFault reads the words of the command line: link NODE:NIC
// rate=50%|loss=N%|down|flap[=PERIOD], node NODE pause|kill.
func ParseFault(kind, where, what string) (Fault, error) {
	f := Fault{Kind: kind, Where: where}
	word, value, has := strings.Cut(what, "=")
	f.What = word
	bad := fmt.Errorf("%.60q: expected rate=50%%, loss=1%%, down or flap[=1s]", what)
	switch {
	case kind == "node" && (what == "pause" || what == "kill"):
		return f, nil
	case kind == "node":
		return f, fmt.Errorf("%.60q: expected pause or kill", what)
	case kind != "link":
		return f, fmt.Errorf("%.60q: expected link or node", kind)
	}
	switch word {
	case "down":
		if has {
			return f, bad
		}
	case "flap":
		f.Every = time.Second
		if has {
			d, err := time.ParseDuration(value)
			if err != nil || d < 10*time.Millisecond || d > time.Hour {
				return f, fmt.Errorf("%.60q: expected a time from 10ms to 1h", what)
			}
			f.Every = d
		}
	case "rate", "loss":
		x, err := strconv.ParseFloat(strings.TrimSuffix(value, "%"), 64)
		if !strings.HasSuffix(value, "%") || err != nil || !(x > 0) || x > 100 {
			return f, fmt.Errorf("%.60q: expected %s=PERCENT%%, above 0 and at most 100", what, word)
		}
		f.Share = x / 100
	default:
		return f, bad
	}
	return f, nil
}

// place is the name that the faults of a place have: words of the command line may number
// a NIC, or name the GPUs of a link in either order.
func (p *Plan) place(word string) (string, error) {
	if word == "" || word == "all" || word == "link" || word == "node" || p.NodeByName(word) >= 0 {
		return word, nil
	}
	if n, links := p.InnerLink(word); len(links) > 0 {
		return p.Nodes[n].Name + ":" + strings.Replace(p.inner(n).Links[links[0]].Name, "→", "-", 1), nil
	}
	i, err := p.Link(word)
	if err != nil {
		return "", err
	}
	return p.Nodes[p.NICs[i].Node].Name + ":" + p.NICs[i].Name, nil
}
