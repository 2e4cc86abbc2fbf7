package check

import (
	"fmt"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/schedule"
	"busbar.dev/unit"
)

// Trial is an algorithm on a layout: what is measured in a lab and predicted for it.
type Trial struct {
	Layout string          `json:"layout"`
	Nodes  int             `json:"nodes"`
	Each   int             `json:"each"` // ranks of a node
	Kind   coll.Kind       `json:"op"`
	Word   string          `json:"algo"` // as asked for: ring:interleaved
	Algo   string          `json:"builder"`
	Params schedule.Params `json:"params"`
}

// NewTrial reads an algorithm's word: a name of the schedule's builders, with what is
// particular about it behind a colon: ring:interleaved goes from node to node at every
// step, ring:crossing between the two halves of the nodes, hierarchical:leaves takes those
// halves for groups, hierarchical:tree runs trees across the nodes. The error is a
// *schedule.Refusal where the algorithm makes no sense on the layout.
func newTrial(kind coll.Kind, word string, nodes, each int) (Trial, error) {
	t := Trial{Layout: fmt.Sprintf("%dx%d", nodes, each), Nodes: nodes, Each: each, Kind: kind, Word: word}
	name, particular, _ := strings.Cut(word, ":")
	t.Algo = name
	n := nodes * each
	t.Params.Ranks = n
	refuse := func(reason string) (Trial, error) {
		return t, &schedule.Refusal{Kind: kind, Name: word, Reason: reason}
	}
	for g := range nodes {
		var group []int
		for i := range each {
			group = append(group, g*each+i)
		}
		t.Params.Groups = append(t.Params.Groups, group)
	}
	if name == "tree" { // a tree and its mirror, each with half of the data
		t.Params.Channels, t.Params.Pieces = 2, 8
	}
	switch {
	case particular == "":
	case name == "ring" && particular == "interleaved":
		if nodes < 2 || each < 2 {
			return refuse("the same as ring with one node or one rank a node")
		}
		for i := range each {
			for g := range nodes {
				t.Params.Order = append(t.Params.Order, g*each+i)
			}
		}
	case name == "ring" && particular == "crossing":
		if nodes%2 > 0 || nodes < 4 || each > 1 {
			return refuse("it goes to and fro between two halves of at least two nodes, with one rank a node")
		}
		for i := range nodes / 2 {
			t.Params.Order = append(t.Params.Order, i, i+nodes/2)
		}
	case name == "hierarchical" && particular == "leaves":
		if nodes%2 > 0 || nodes < 4 || each > 1 {
			return refuse("it takes two halves of at least two nodes for leaves, with one rank a node")
		}
		t.Params.Groups = nil
		for h := range 2 {
			var group []int
			for i := range nodes / 2 {
				group = append(group, h*nodes/2+i)
			}
			t.Params.Groups = append(t.Params.Groups, group)
		}
	case name == "hierarchical":
		t.Params.Outer = particular
	default:
		return t, fmt.Errorf("algorithm %.60q: expected a name of `busbar sched --list`, ring:interleaved, ring:crossing, hierarchical:leaves or hierarchical:OUTER", word)
	}
	if name == "hierarchical" && particular != "leaves" && (nodes < 2 || each < 2) {
		return refuse("the same as a flat algorithm with one node or one rank a node")
	}
	_, err := t.Schedule()
	return t, err
}

// Schedule is the program of a trial, which both the engine and the predictor run.
func (t *Trial) Schedule() (*schedule.Schedule, error) {
	s, err := schedule.Build(t.Kind, t.Algo, t.Params)
	if err == nil && len(s.Switches) > 0 {
		return nil, &schedule.Refusal{Kind: t.Kind, Name: t.Word, Reason: "it computes in switches, which only hardware has"}
	}
	return s, err
}

// Op is the operation of a trial at a size.
func (t *Trial) Op(size unit.Bytes) coll.Op {
	return coll.Op{Kind: t.Kind, Type: coll.Float, Bytes: size}
}
