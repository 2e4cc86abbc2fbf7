package cause_test

import (
	"crypto/sha256"
	"flag"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"busbar.dev/doctor"
	"busbar.dev/doctor/cause"
	"busbar.dev/doctor/evidence"
	"busbar.dev/internal/test/corpus"
)

var fit = flag.Bool("fit", false, "fit the weights of causes anew and write them")

// prepared are the threads of a file, and those of them that nobody read while signs were written.
func prepared(t *testing.T, m *cause.Model, name string) (all, unread []*cause.Thread) {
	t.Helper()
	f, err := os.Open(filepath.Join("..", "testdata", "cases", name))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	raw, err := doctor.ReadThreads(name, f)
	if err != nil {
		t.Fatal(err)
	}
	v := evidence.NewVocabulary()
	for i := range raw {
		x, err := raw[i].Prepare(v, m, false)
		if err != nil {
			t.Fatal(err)
		}
		if all = append(all, x); raw[i].Unread() {
			unread = append(unread, x)
		}
	}
	return all, unread
}

// preparedTrials are the faults in our own words, and the published ones where the shared folder is there.
func preparedTrials(t *testing.T, m *cause.Model) (list []*cause.Thread) {
	t.Helper()
	v := evidence.NewVocabulary()
	for _, name := range []string{
		"../testdata/trials.jsonl", filepath.Join(corpus.Dir(t), "truth", "doctor-cases.jsonl"),
	} {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		trials, err := doctor.ReadTrials(name, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		for i := range trials {
			x, err := trials[i].Prepare(v, m)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, x)
		}
	}
	return list
}

// TestFit fits what is learned from threads, and prints how good it is on threads and projects left out.
func TestFit(t *testing.T) {
	if !*fit {
		t.Skip("go test ./doctor/cause -run TestFit -fit -v fits the weights anew")
	}
	m, err := doctor.NewModel()
	if err != nil {
		t.Fatal(err)
	}
	all, unread := prepared(t, m, "fit.jsonl")
	second, _ := prepared(t, m, "fit-2.jsonl")
	third, _ := prepared(t, m, "fit-3.jsonl")
	fourth, _ := prepared(t, m, "fit-4.jsonl")
	unread = slices.Concat(unread, third, fourth)
	all = slices.Concat(all, second, third, fourth)
	t.Logf("%d threads, %d unread", len(all), len(unread))
	trials := preparedTrials(t, m)
	m.Learn(slices.Concat(all, trials))
	m.Ready(slices.Concat(all, trials))
	m.Fit(unread, trials)
	t.Log("\n" + m.Table() + m.RecordTable())
	t.Log("unread, thread left out: ", m.Score(unread, true))
	t.Log("all, thread left out: ", m.Score(all, true))
	t.Log("trials, left out: ", m.Score(trials, true))
	t.Log("unread, projects left out: ", byProject(m, all, unread, trials))
	m.Learn(slices.Concat(all, trials))
	if err := m.Write(slices.Concat(all, trials),
		func(name string) (io.WriteCloser, error) { return os.Create(name) }); err != nil {
		t.Fatal(err)
	}
}

// byProject scores the unread threads of an eighth of the projects by what was learned from the others, with the same
// weights.
func byProject(m *cause.Model, all, unread, trials []*cause.Thread) cause.Score {
	var score cause.Score
	part := func(x *cause.Thread) byte { return sha256.Sum256([]byte(x.Project))[0] % 8 }
	for p := range byte(8) {
		m.Learn(slices.DeleteFunc(slices.Concat(all, trials),
			func(x *cause.Thread) bool { return x.Project != "" && part(x) == p }))
		for _, x := range unread {
			if part(x) == p {
				score.Add(m.Weigh(&x.Case), x.Accept)
			}
		}
	}
	return score
}
