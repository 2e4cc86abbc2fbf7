package result

import "busbar.dev/unit"

// Links are those of hosts on which a run does the same, link by link, or those of
// the network where no host is named.
type Links struct {
	Hosts string    `json:"hosts,omitempty"` // a hostlist
	Uses  []LinkUse `json:"links"`           // busiest first
}

// LinkUse is how busy links are that carry equally much; bytes and rate are those of each, one direction.
type LinkUse struct {
	// Which names them with their direction by the devices at their ends: gpu0→nvswitch0,
	// nic0→network, network→nic0, leaf0→above, above→leaf0. What is copied through host memory
	// on its way has the same name and the kind ByHost; memory of GPUs' own copies is numa0.
	Which  []string   `json:"which"`
	Kind   LimitKind  `json:"kind"`
	Rate   unit.Rate  `json:"rate_GBps"`
	Cables int        `json:"cables,omitempty"` // that carry it together, of uplinks; 0 is one
	Bytes  unit.Bytes `json:"bytes"`
	Share  float64    `json:"share"`
	Tight  bool       `json:"bottleneck,omitempty"` // it limits the run
}

// Round is the messages of a call before each of which as many others must come.
type Round struct {
	Phase string    `json:"phase"` // reduce-scatter, all-gather, … and where
	Sends []Send    `json:"sends"`
	Time  unit.Time `json:"time_s,omitempty"` // that the busiest link needs for its bytes
	Links []Links   `json:"links,omitempty"`  // their shares are of that time
}

// Send is what one rank sends another in a round, by all channels; numbers from the number of ranks on are switches.
type Send struct {
	From    int        `json:"from"`
	To      int        `json:"to"`
	Bytes   unit.Bytes `json:"bytes"`
	Reduces bool       `json:"reduces,omitempty"` // the receiver adds it, or a part of it, to its own
	Parts   []Part     `json:"parts"`
}

// Part is what one lane sends of it: chunks of a buffer, and where they come in the receiver's.
type Part struct {
	Lane    int    `json:"lane"`
	Buffer  string `json:"buffer,omitempty"` // out or temp; "" is the data
	From    int    `json:"from"`
	To      int    `json:"to"`
	Into    string `json:"into,omitempty"` // likewise, of the receiver
	At      int    `json:"at"`
	Reduces bool   `json:"reduces,omitempty"`
}
