package finding

import (
	"fmt"
	"time"
)

// Kind is what is wrong, without where: slow-host, link-down.
type Kind string

// Finding is one thing that is wrong, or will be. JSON leaves out what it does not have, but for what scripts index in
// every finding of a list: severity, text and cost.
type Finding struct {
	// ID names the finding. The same fault has the same ID in every answer. Findings of
	// an audit and of the doctor are named by their rule (nic-shared), those of a fleet
	// by kind and place (slow-host:node7); those of a single table of pairs have none.
	ID       string   `json:"id,omitempty"`
	Kind     Kind     `json:"kind,omitempty"`
	Severity Severity `json:"severity"`
	// Confidence is how often a finding with as much of it is right, from 0 to 1.
	Confidence float64 `json:"confidence,omitempty"`
	// Where is the device, port, rail, leaf or hostlist: node[0-15]/mlx5_0.
	Where string `json:"where,omitempty"`

	// Text says in a sentence what is wrong. Where there is a Title, that is the sentence, and
	// Cause says why.
	Text  string `json:"text"`
	Title string `json:"title,omitempty"`
	Cause string `json:"cause,omitempty"`
	// Fix is what to do, Cost what it costs a job, Reference a document about it.
	Fix       string `json:"fix,omitempty"`
	Confirm   string `json:"confirm,omitempty"` // the command that tells whether it is this
	Cost      string `json:"cost"`
	Reference string `json:"reference,omitempty"`

	// Nodes are those to look at: one, the two ends of a pair (sender first), all of a leaf.
	Nodes []string `json:"nodes,omitzero"`
	// Ranks are those of a host, or sender and receiver of a pair.
	Ranks []int `json:"ranks,omitzero"`

	// Evidence is what the finding rests on.
	Evidence []Quote `json:"evidence,omitzero"`
	// ExplainedBy is the ID of the finding that this one follows from; roots have none.
	ExplainedBy string `json:"explained_by,omitempty"`

	// Figure is what was measured: bandwidth, latency, bandwidth both ways. Transport is what pairs were measured by where
	// it is not TCP: rdma, nccl.
	Figure    string `json:"figure,omitempty"`
	Transport string `json:"transport,omitempty"`
	// Factor is the part left of what peers have, below 1; none where nothing gets through, or where there is no such
	// figure. Sigma is how many robust deviations that is away from them.
	Factor float64 `json:"factor,omitempty"`
	Sigma  float64 `json:"sigma,omitempty"`

	// Since is when it began; where Always is set, it was so when first seen. Clearing is set
	// while the last measurements were good but not yet enough of them, Cleared when it is over.
	Since    time.Time `json:"since,omitzero"`
	Always   bool      `json:"always,omitempty"`
	Clearing bool      `json:"clearing,omitempty"`
	Cleared  time.Time `json:"cleared,omitzero"`
}

// Quote is a line that a finding rests on; one without a file is a sentence of the finder's own.
type Quote struct {
	File string `json:"file"`
	Line int    `json:"line"` // from 1; 0 is the whole file
	Text string `json:"text"`
}

// Place is the file and the line: log.txt:12.
func (q Quote) Place() string {
	if q.Line == 0 {
		return q.File
	}
	return fmt.Sprintf("%s:%d", q.File, q.Line)
}

// String is the text behind its place, if it has one.
func (q Quote) String() string {
	if q.File == "" && q.Line == 0 {
		return q.Text
	}
	return q.Place() + ": " + q.Text
}

// Facts makes evidence of sentences.
func Facts(sentences ...string) []Quote {
	if sentences == nil {
		return nil
	}
	list := make([]Quote, len(sentences))
	for i, s := range sentences {
		list[i].Text = s
	}
	return list
}
