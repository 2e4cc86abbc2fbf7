package k8s

import (
	"io"
	"strings"

	"busbar.dev/cluster"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/lines"
	"busbar.dev/internal/yamldoc"
)

var (
	describedName = lazyre.New(`^(?:Name|  Hostname):\s+([\w.-]+)$`)
	// ofNode is what is said of nodes and of no other object.
	ofNode = []string{"\nCapacity:", "\nAllocatable:", "\nUnschedulable:", "\nRoles:", "\nNon-terminated Pods:"}
	// condition is type, status, two times, reason, message.
	condition = lazyre.New(`^(\w[\w./-]{0,100})\s+(True|False|Unknown)\s(?:.* [+-]\d{4})?\s*(\S+)\s+(.*)$`)
)

// MatchDescribe reports whether the text holds what kubectl describe node prints, whole or shortened.
func MatchDescribe(data []byte) bool {
	return lines.HasAny(data, ofNode...) && lines.Find(data, "ame:", describedName.MatchString)
}

// ReadDescribe reads the nodes of kubectl describe as the objects that they are, each on the line of its name.
func ReadDescribe(name string, r io.Reader) (*cluster.Fragment, error) {
	var docs []yamldoc.Value
	section := ""
	err := lines.Each(name, r, func(line int, text string) error {
		key, rest, ok := strings.Cut(text, ":")
		if ok && key != "" && key[0] != ' ' && key[0] != '\t' {
			section, text = key, rest
		}
		named := key == "Name" || docs == nil && strings.TrimSpace(key) == "Hostname" // of one whose beginning was cut off
		if rest = strings.TrimSpace(rest); named && rest != "" && len(docs) <= cluster.MaxHosts {
			docs = append(docs, yamldoc.Value{Line: int32(line)})
			set(&docs[len(docs)-1], "Node", "kind")
			set(&docs[len(docs)-1], rest, "metadata", "name")
		} else if len(docs) > 0 {
			takeLine(&docs[len(docs)-1], section, strings.TrimSpace(text))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return fragment(name, docs)
}

// takeLine adds a line of a section to a node.
func takeLine(n *yamldoc.Value, section, text string) {
	key, v, _ := strings.Cut(text, ":")
	switch section {
	case "Labels":
		if key, v, ok := strings.Cut(text, "="); ok {
			set(n, v, "metadata", "labels", key)
		}
	case "Unschedulable":
		set(n, text, "spec", "unschedulable")
	case "Capacity", "Allocatable":
		set(n, strings.TrimSpace(v), "status", strings.ToLower(section), key)
	case "Conditions":
		if m := condition.FindStringSubmatch(text); m != nil {
			list := at(n, "status", "conditions")
			list.Kind, list.Items = yamldoc.List, append(list.Items, yamldoc.Value{Line: n.Line})
			for i, key := range []string{"type", "status", "reason", "message"} {
				set(&list.Items[len(list.Items)-1], m[1+i], key)
			}
		}
	}
}

// at is the value at a path of keys, made where there is none. An object has so many keys at most.
func at(v *yamldoc.Value, path ...string) *yamldoc.Value {
	for _, k := range path {
		if v.Kind = yamldoc.Map; v.Get(k) == nil {
			v.Items = append(v.Items[:min(len(v.Items), 1<<10)], yamldoc.Value{Line: v.Line, Key: k})
		}
		v = v.Get(k)
	}
	return v
}

func set(v *yamldoc.Value, text string, path ...string) {
	v = at(v, path...)
	v.Kind, v.Text = yamldoc.Scalar, text
}
