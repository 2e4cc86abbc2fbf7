package truth

import (
	"maps"
	"slices"
	"strings"

	"busbar.dev/predict"
	"busbar.dev/result"
)

// said is what a publication says about its own figures, never nil.
func said(s *result.Sweep) *result.Published {
	if s.Published == nil {
		return &result.Published{}
	}
	return s.Published
}

// conditions are how the calls of a sweep were made and timed, and the fields about it that a
// prediction cannot use.
func conditions(s *result.Sweep) (predict.Conditions, []string) {
	x, tool := said(s), strings.ToLower(s.Tool)
	var unused []string
	c, ok := predict.ParseLaunch(x.Launch)
	if !ok {
		unused = append(unused, "launch: "+x.Launch)
	}
	if x.Launch == "" {
		from, _ := predict.ParseLaunch(tool + " " + x.Notes)
		c.Serial = from.Serial
	}
	switch {
	case strings.Contains(tool, "torch"):
		c.Alone = true
	case tool == "", strings.Contains(tool, "nccl-tests"), strings.Contains(tool, "rccl-tests"),
		strings.HasPrefix(tool, "busbar"):
	default:
		unused = append(unused, "tool: "+s.Tool)
	}
	c.Queue = !c.Alone
	c.Year = x.Year
	return c, unused
}

// unusedSettings are those of the environment that a prediction does not follow although they may change
// the speed; env are the settings that it was given.
func unusedSettings(s *result.Sweep, env map[string]string) []string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(s.Env)) {
		if _, given := env[key]; !given || predict.Unmodelled(key) {
			list = append(list, "env "+key)
		}
	}
	if text := protoText(s); text != "" && env["NCCL_PROTO"] == "" {
		list = append(list, "proto: "+text)
	}
	return list
}

// protoText is what the source says about the protocol, "" where it says nothing.
func protoText(s *result.Sweep) string {
	if len(s.Points) == 0 || s.Points[0].Proto == "auto" {
		return ""
	}
	return s.Points[0].Proto
}
