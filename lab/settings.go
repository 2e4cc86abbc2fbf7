package lab

import (
	"errors"
	"fmt"

	"busbar.dev/cluster"
	"busbar.dev/predict"
	"busbar.dev/unit"
)

// Settings are the flags that say how a lab is made of a cluster.
type Settings struct {
	Scale    string `placeholder:"1/N" help:"Factor between the file's rates and the lab's (default: the fastest NIC gets at most 1 Gb/s, all NICs together 4 Gb/s)."`
	Inside   string `enum:"auto,links,memory" default:"auto" help:"Transport inside a node: links (emulated GPU links) or shm (shared memory); auto is links where two cores can drive them at the scale (default auto)."`
	Spines   int    `default:"2" help:"Maximum number of bridges that stand for a group of spine switches (default 2)."`
	MTU      int    `name:"mtu" placeholder:"BYTES" help:"MTU of all NICs (default: as the file states, else 9000)."`
	Staging  string `placeholder:"RATE" help:"Rate of a half-duplex path through host memory, before scaling, that all NIC traffic of a node crosses: 14GB/s."`
	Local    bool   `name:"staging-local" help:"TCP traffic between ranks of a node crosses that path too."`
	Rootless bool   `help:"In a user namespace, even as root."`
}

// Plan plans a lab of a cluster by the settings, with the nodes of a layout (NODESxGPUS) or all of them.
func (s *Settings) Plan(c *cluster.Cluster, layout string) (*Plan, error) {
	o, err := s.options()
	if err != nil {
		return nil, err
	}
	if layout != "" {
		if o.Nodes, o.GPUs, err = predict.ParseLayout(layout); err != nil {
			return nil, err
		}
	}
	return New(c, o)
}

// options are the settings as New takes them.
func (s *Settings) options() (o Options, err error) {
	o = Options{Spines: s.Spines, MTU: s.MTU, Local: s.Local, Inside: Inside(s.Inside)}
	if s.Scale != "" {
		if o.Scale, err = parseScale(s.Scale); err != nil {
			return o, fmt.Errorf("--%w", err)
		}
	}
	if s.Staging != "" {
		if o.Staging, err = unit.ParseRate(s.Staging); err != nil {
			return o, fmt.Errorf("--staging: %w", err)
		}
	}
	if s.Local && s.Staging == "" {
		return o, errors.New("--staging-local: there is no such path without --staging RATE")
	}
	if s.Spines < 1 || s.Spines > 16 || s.MTU != 0 && (s.MTU < 576 || s.MTU > 65000) {
		return o, fmt.Errorf("--spines %d --mtu %d: expected 1 to 16 spines and 576 to 65000 bytes", s.Spines, s.MTU)
	}
	return o, nil
}
