package nccl

import (
	"reflect"
	"strings"
	"testing"

	"busbar.dev/internal/csvtable"
)

// TestRules holds every change of rules.csv to a release that is known, oldest first, and every rule to a change; that
// fields and places are known shows in that they are made.
func TestRules(t *testing.T) {
	rows, err := csvtable.Read[change](rulesTable)
	if err != nil {
		t.Fatal(err)
	}
	changed, last := map[string]bool{}, Version{}
	for _, c := range rows {
		release, rule, _ := strings.Cut(c.Rule, " ")
		v, err := ParseVersion(release)
		if err != nil || v.Compare(last) < 0 {
			t.Errorf("%s: after %s, %v; expected releases of releases.csv in their order", c.Rule, last, err)
		}
		last = v
		var before, after rules
		before = *v.rules()
		after = before
		after.change(change{Rule: rule, Value: c.Value})
		if !reflect.DeepEqual(before, after) {
			t.Errorf("%s: another row of the release changes it again", c.Rule)
		}
		field, _, _ := strings.Cut(rule, " ")
		changed[field] = true
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[rules]()) {
		if !changed[f.Name] {
			t.Errorf("no row changes the rule %s", f.Name)
		}
	}
}

// TestReleaseChanges holds one change of releases to what it was before and after: a constant, a limit, a rule.
func TestReleaseChanges(t *testing.T) {
	at := func(minor int) *rules { return (Version{2, minor, 0}).rules() }
	if a, b := at(24).MaxChannels, at(25).MaxChannels; a != 32 || b != 64 {
		t.Errorf("channels of 2.24 and 2.25: %d and %d", a, b)
	}
	if a, b := at(20).LL[hopper], at(21).LL[hopper]; a != at(20).LL[ampere] || b != [3]float64{141, 45, 35} {
		t.Errorf("LL on Hopper of 2.20 and 2.21: %v and %v", a, b)
	}
	if a, b, c := at(11), at(12), at(23); a.RingAcrossAll || !b.RingAcrossAll || c.RingAcrossAll {
		t.Error("2.12 to 2.22 cross the network 2n times, others do not")
	}
	if at(5) != Oldest.rules() || at(99) != Newest.rules() {
		t.Error("releases before and after those that are known are not as the nearest")
	}
}
