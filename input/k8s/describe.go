package k8s

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
)

var (
	describedName = lazyre.New(`^Name:\s+([\w.-]+)$`)
	// ofNode is what is said of nodes and of no other object.
	ofNode = []string{"\nCapacity:", "\nAllocatable:", "\nUnschedulable:", "\nNon-terminated Pods:"}
	// condition is type, status, two times, reason, message.
	condition = lazyre.New(`^(\w[\w./-]{0,100})\s+(True|False|Unknown)\s(?:.* [+-]\d{4})?\s*(\S+)\s+(.*)$`)
)

// described is the object that kubectl describe node prints.
type described struct {
	Kind     string `json:"kind"`
	Metadata struct {
		Name   string            `json:"name"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		Unschedulable bool `json:"unschedulable"`
	} `json:"spec"`
	Status struct {
		Capacity    map[string]string   `json:"capacity,omitempty"`
		Allocatable map[string]string   `json:"allocatable,omitempty"`
		Conditions  []map[string]string `json:"conditions"`
	} `json:"status"`
}

// MatchDescribe reports whether the text holds what kubectl describe node prints, whole or shortened.
func MatchDescribe(data []byte) bool {
	of := func(section string) bool { return bytes.Contains(data, []byte(section)) }
	return slices.ContainsFunc(ofNode, of) && lines.Find(data, "Name:", describedName.MatchString)
}

// ReadDescribe reads the nodes of kubectl describe as the list of objects that they are, each on the line of its name.
func ReadDescribe(name string, r io.Reader) (*cluster.Fragment, error) {
	list := bytes.NewBufferString(`{"apiVersion":"v1","kind":"NodeList","items":[`)
	var n *described
	line, section := 1, ""
	finish := func() {
		if n != nil {
			json.NewEncoder(list).Encode(n) // of texts and maps of texts there is no error
			line++
		}
	}
	err := lines.Each(name, r, func(num int, text string) error {
		key, rest, ok := strings.Cut(text, ":")
		if ok && key != "" && key[0] != ' ' && key[0] != '\t' {
			section, text = key, rest
		}
		if text = strings.TrimSpace(text); section == "Name" && key == section && text != "" {
			if finish(); n != nil {
				list.WriteByte(',')
			}
			list.WriteString(strings.Repeat("\n", max(num-line, 0)))
			line, n = max(num, line), &described{Kind: "Node"}
			n.Metadata.Name = text
			n.Metadata.Labels, n.Status.Capacity = map[string]string{}, map[string]string{}
			n.Status.Allocatable = map[string]string{}
		} else if n != nil {
			n.take(section, text)
		}
		return nil
	})
	if finish(); err != nil {
		return nil, err
	}
	if n == nil {
		return nil, fmt.Errorf("%s: no node; expected \"Name:\", with which kubectl describe node begins", name)
	}
	list.WriteString("]}")
	return Read(name, list)
}

// take adds a line of a section.
func (n *described) take(section, text string) {
	key, v, _ := strings.Cut(text, ":")
	v = strings.TrimSpace(v)
	switch section {
	case "Labels":
		if key, v, ok := strings.Cut(text, "="); ok {
			n.Metadata.Labels[key] = v
		}
	case "Unschedulable":
		n.Spec.Unschedulable = n.Spec.Unschedulable || text == "true"
	case "Capacity":
		n.Status.Capacity[key] = v
	case "Allocatable":
		n.Status.Allocatable[key] = v
	case "Conditions":
		if m := condition.FindStringSubmatch(text); m != nil {
			n.Status.Conditions = append(n.Status.Conditions, map[string]string{
				"type": m[1], "status": m[2], "reason": m[3], "message": m[4],
			})
		}
	}
}
