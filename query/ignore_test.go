package query

import "testing"

// FuzzIgnores: a file of findings to leave out is read, or refused with a reason.
func FuzzIgnores(f *testing.F) {
	f.Add("- finding: nic-shared\n  where: node[0-1]/*\n  reason: known\n  until: 2999-12-31\n")
	f.Add("- {finding: a, reason: b, until: 2020-02-30}\n")
	f.Add("- {finding: a, where: \"b\xa3[0-1]/*\", reason: b, until: 2999-12-31}\n")
	f.Fuzz(func(t *testing.T, text string) {
		rules, err := parseIgnores((&Env{}).budget(t.Context()), text)
		for _, r := range rules {
			if err == nil && (r.ID == "" || r.Reason == "" || r.end.IsZero()) {
				t.Errorf("%+v", r)
			}
		}
	})
}
