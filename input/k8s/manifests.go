package k8s

import (
	"fmt"
	"strings"

	"busbar.dev/internal/yamldoc"
)

const kueue = "kueue.x-k8s.io/"

// Most notes, and most values looked at in one object for annotations.
const (
	maxNotes = 50
	maxWalk  = 100_000
)

func (o *objects) note(line int, format string, args ...any) {
	if len(o.notes) < maxNotes {
		o.notes = append(o.notes, note{line, fmt.Sprintf(format, args...)})
	}
}

// manifest reads what an object around topology-aware scheduling says.
func (o *objects) manifest(v *yamldoc.Value, kind, api string) {
	name := v.Get("metadata", "name").Str()
	if name == "" {
		name = v.Get("metadata", "generateName").Str()
	}
	line := v.LineNum()
	if strings.HasPrefix(api, kueue) {
		o.known++
		switch kind {
		case "Topology":
			keys := keysOf(v)
			if len(keys) == 0 {
				o.f.Warnf(line, name, "a Topology without levels")
				return
			}
			o.levels = append(o.levels, keys)
			o.note(line, "topology %s has the levels %s", name, strings.Join(keys, " > "))
		case "ResourceFlavor":
			o.flavor(v, name, line)
		case "ClusterQueue":
			o.quota(v, name, line)
		}
		return
	}
	o.asks(v, kind, name)
}

// flavor notes which nodes a ResourceFlavor is about.
func (o *objects) flavor(v *yamldoc.Value, name string, line int) {
	var labels []string
	for _, l := range v.Get("spec", "nodeLabels").Map() {
		labels = append(labels, l.Key+"="+l.Text)
	}
	text := "flavor " + name + " is the nodes with " + strings.Join(labels, ", ")
	if len(labels) == 0 {
		text = "flavor " + name + " is every node"
	}
	if t := v.Get("spec", "topologyName").Str(); t != "" {
		text += " in topology " + t
	}
	o.note(line, "%s", text)
}

// quota notes how many GPUs a queue may hand out.
func (o *objects) quota(v *yamldoc.Value, name string, line int) {
	groups := v.Get("spec", "resourceGroups").List()
	for i := range groups {
		flavors := groups[i].Get("flavors").List()
		for k := range flavors {
			resources := flavors[k].Get("resources").List()
			for r := range resources {
				res := &resources[r]
				if isGPU(res.Get("name").Str()) {
					o.note(line, "queue %s has a quota of %s %s in flavor %s", name, res.Get("nominalQuota").Str(),
						res.Get("name").Str(), flavors[k].Get("name").Str())
				}
			}
		}
	}
}

// asks notes the topology that a job wants, from annotations anywhere in it.
func (o *objects) asks(v *yamldoc.Value, kind, name string) {
	found := false
	left := maxWalk
	var walk func(v *yamldoc.Value)
	walk = func(v *yamldoc.Value) {
		for i := range v.Items {
			if left--; left < 0 {
				return
			}
			e := &v.Items[i]
			if what, ok := strings.CutPrefix(e.Key, kueue+"podset-"); ok && strings.HasSuffix(what, "-topology") {
				found = true
				o.note(e.LineNum(), "%s %s asks for %s topology %s", kind, name, strings.TrimSuffix(what, "-topology"), e.Str())
			}
			if strings.HasPrefix(e.Key, kueue) {
				found = true
			}
			walk(e)
		}
	}
	walk(v)
	if found {
		o.known++
	}
}
