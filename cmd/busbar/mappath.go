package main

import (
	"fmt"
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/texttab"
)

// pathJSON is one path in the JSON of busbar map --path.
type pathJSON struct {
	From       string    `json:"from"`
	To         string    `json:"to"`
	Class      string    `json:"class"`
	Reach      string    `json:"reach"`
	Via        string    `json:"via"`
	RateGBps   *float64  `json:"rate_GBps,omitempty"`
	LatencyUS  float64   `json:"latency_us"`
	Bottleneck string    `json:"bottleneck"`
	Hops       []hopJSON `json:"hops"`
}

type hopJSON struct {
	From     string   `json:"from"`
	To       string   `json:"to"`
	Kind     string   `json:"kind"`
	RateGBps *float64 `json:"rate_GBps,omitempty"`
	Origin   string   `json:"rate_from"`
}

// paths prints the routes that --path asks for. No known path is an answer too,
// but not a good one: lost.
func (c *mapCmd) paths(w io.Writer, cl *cluster.Cluster, asJSON bool) (lost bool, err error) {
	routes := cluster.NewRoutes(cl)
	out := []pathJSON{}
	for _, ask := range c.Path {
		from, to, ok := strings.Cut(ask, ",")
		if !ok {
			return false, fmt.Errorf("--path %s: expected two devices, e.g. node0/gpu0,node1/gpu3", ask)
		}
		a, err := findPlace(cl, from)
		if err != nil {
			return false, fmt.Errorf("--path %s: %w", ask, err)
		}
		b, err := findPlace(cl, to)
		if err != nil {
			return false, fmt.Errorf("--path %s: %w", ask, err)
		}
		p := routes.Path(a, b)
		lost = lost || p.Class.Type == cluster.Apart
		if asJSON {
			out = append(out, pathOut(from, to, &p))
			continue
		}
		rate := "unknown rate"
		if p.Rate.Known() {
			rate = fmt.Sprintf("%v one direction (%v)", p.Rate.Value, p.Rate.Origin)
			if p.Unknown > 0 {
				rate = "at most " + rate
			}
		}
		var text strings.Builder
		fmt.Fprintf(&text, "%s → %s: %v, %s; %s\n  limited by %s\n", from, to, p.Class, p.Via, rate, p.Bottleneck())
		for _, h := range p.Hops {
			fmt.Fprintf(&text, "    %v\n", h)
		}
		if _, err := io.WriteString(w, texttab.Clean(text.String())); err != nil {
			return false, err
		}
	}
	if asJSON {
		err = writeIndented(w, map[string]any{"paths": out})
	}
	return lost, err
}

func pathOut(from, to string, p *cluster.Path) pathJSON {
	j := pathJSON{
		From: from, To: to, Class: p.Class.String(), Reach: p.Reach.String(), Via: p.Via,
		LatencyUS: p.Latency.Micros(), Bottleneck: p.Bottleneck(), Hops: []hopJSON{},
	}
	rate := func(known bool, v float64) *float64 {
		if !known {
			return nil
		}
		return &v
	}
	j.RateGBps = rate(p.Rate.Known(), p.Rate.Value.GBps())
	for _, h := range p.Hops {
		j.Hops = append(j.Hops, hopJSON{h.From, h.To, h.Kind, rate(h.Rate.Known(), h.Rate.Value.GBps()), h.Rate.Origin.String()})
	}
	return j
}

// findPlace resolves "node0/gpu3", "node0/mlx5_0", or a name without its host
// when the cluster has one host.
func findPlace(c *cluster.Cluster, s string) (cluster.Place, error) {
	host, dev, ok := strings.Cut(strings.TrimSpace(s), "/")
	if !ok {
		if len(c.Hosts) != 1 {
			return cluster.Place{}, fmt.Errorf("%q: expected HOST/DEVICE, since there are %d hosts", s, len(c.Hosts))
		}
		host, dev = c.Hosts[0].Name, host
	}
	h := c.HostIndex(host)
	if h < 0 && len(c.Hosts) == 0 {
		return cluster.Place{}, fmt.Errorf("no host is known")
	}
	if h < 0 {
		return cluster.Place{}, fmt.Errorf("no host %q; the first is %s", host, c.Hosts[0].Name)
	}
	t := c.TypeOf(h)
	if t == nil {
		return cluster.Place{}, fmt.Errorf("nothing is known about the inside of %s", host)
	}
	for i := range t.Devices {
		d := &t.Devices[i]
		if strings.EqualFold(d.Name, dev) || strings.EqualFold(d.Label, dev) || d.PCI != "" && string(d.PCI) == strings.ToLower(dev) {
			return cluster.Place{Host: h, Device: i}, nil
		}
	}
	for _, id := range c.Hosts[h].IDs {
		if id.UUID != "" && id.UUID == dev {
			return cluster.Place{Host: h, Device: t.ByName(id.Device)}, nil
		}
	}
	var names []string
	for _, d := range append(t.Of(cluster.GPU), t.Of(cluster.NIC)...) {
		names = append(names, t.Devices[d].Title())
	}
	return cluster.Place{}, fmt.Errorf("no device %q on %s; it has %s", dev, host, strings.Join(names, ", "))
}
