package k8s

import (
	"cmp"
	"strconv"
	"strings"

	"busbar.dev/input/internal/warn"
	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/yamldoc"
)

// conditionName is one that may be part of a finding's name.
var conditionName = lazyre.New(`^[A-Za-z][A-Za-z0-9-]{0,60}$`)

// health notes what Kubernetes says is wrong with a node.
func (o *objects) health(n *node, v *yamldoc.Value) {
	found := func(id, severity, fix, format string, args ...any) {
		warn.Found(o.f, n.line, n.name, id, severity, fix, format, args...)
	}
	for _, c := range v.Get("status", "conditions").List() {
		name, status := c.Get("type").Str(), c.Get("status").Str()
		well := "False"
		if strings.HasSuffix(name, "Ready") || strings.HasSuffix(name, "Healthy") {
			well = "True"
		}
		if status == well || status == "" {
			continue
		}
		id, severity := "condition", "warn"
		if name == "Ready" {
			severity = "error"
		}
		if conditionName.MatchString(name) {
			id += "-" + strings.ToLower(name)
		}
		found(id, severity, "kubectl describe node "+n.name+", and the kubelet's log on it; drain the node until it "+
			"is over", "condition %s is %s: %s: %s", name, status, c.Get("reason").Str(), c.Get("message").Str())
	}
	if v.Get("spec", "unschedulable").Str() == "true" {
		found("node-cordoned", "note", "kubectl uncordon "+n.name+", when it is repaired",
			"it is cordoned: no new job starts there")
	}
	for _, r := range gpuResources {
		all, err1 := strconv.Atoi(n.capacity.Get(r.name).Str())
		free, err2 := strconv.Atoi(v.Get("status", "allocatable", r.name).Str())
		if err := cmp.Or(err1, err2); err == nil && free < all {
			found("gpus-not-allocatable", "warn",
				"see the log of the device plugin there for why it takes GPUs for unhealthy, and "+
					"dmesg | grep Xid", "%d of %d %s can be allocated", free, all, r.name)
		}
	}
}
