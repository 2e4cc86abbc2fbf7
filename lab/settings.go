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
	Scale    string `placeholder:"1/N" help:"Factor between the file's rates and the lab's. None: so that the fastest NIC has at most 1 Gb/s and all together 4 Gb/s; lab check takes half of that, so that links are measured and not processors."`
	Inside   string `enum:"auto,links,memory" default:"auto" help:"Ranks of a node talk over the imitated links between their GPUs (links), or through this machine's shared memory; auto: links where two cores can push them at the scale."`
	Spines   int    `default:"2" help:"Bridges that an entry for several spine switches becomes, at most."`
	MTU      int    `name:"mtu" placeholder:"BYTES" help:"MTU of all NICs. None: what the file states, else 9000."`
	Staging  string `placeholder:"RATE" help:"A half-duplex path through host memory of this rate (before scaling), which every byte to or from a node's NICs crosses: 14GB/s."`
	Local    bool   `name:"staging-local" help:"What ranks of a node send each other over TCP crosses that path too."`
	Rootless bool   `help:"In a user namespace, even as root."`
}

// Plan plans a lab of a cluster by the settings, with the nodes of a layout (NODESxGPUS) or all of them.
func (s *Settings) Plan(c *cluster.Cluster, layout string) (*Plan, error) {
	o, err := s.Options()
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

// Options are the settings as New takes them.
func (s *Settings) Options() (o Options, err error) {
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
