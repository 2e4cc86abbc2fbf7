package synth

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"

	"busbar.dev/coll"
	"busbar.dev/sim"
	"busbar.dev/step"
)

// Files is the whole corpus, as tests make parts of it for themselves: points, runs, tables, logs, cases, and an
// INDEX.jsonl that says of each file what it is.
func Files() ([]File, error) {
	var list []File
	for _, make := range []func() ([]File, error){pointFiles, runFiles, tableFiles, logFiles, caseFiles} {
		files, err := make()
		if err != nil {
			return nil, err
		}
		list = append(list, files...)
	}
	var index strings.Builder
	for _, f := range list {
		line, err := json.Marshal(map[string]any{"file": f.Name, "synthetic": true, "source": Source, "bytes": len(f.Text)})
		if err != nil {
			return nil, err
		}
		index.Write(append(line, '\n'))
	}
	return append(list, File{"INDEX.jsonl", index.String()}), nil
}

func pointFiles() ([]File, error) {
	var all []Sweep
	for _, m := range Machines() {
		list, err := m.Sweeps(sim.Fitted(), 0.02, Sizes(10, 4), coll.AllReduce, coll.AllGather)
		if err != nil {
			return nil, err
		}
		all = append(all, list...)
	}
	text, err := Lines(all)
	return []File{{"truth/collectives.jsonl", text}}, err
}

func runFiles() ([]File, error) {
	runs, err := Runs(step.Default(), 0.02)
	if err != nil {
		return nil, err
	}
	text, err := Lines(runs)
	return []File{{"truth/training.jsonl", text}}, err
}

func tableFiles() ([]File, error) {
	var list []File
	for _, m := range Machines() {
		points, err := m.Sweeps(sim.Fitted(), 0.02, Sizes(10, 4), coll.AllReduce, coll.Reduce)
		if err != nil {
			return nil, err
		}
		for i := range points {
			text, err := m.Table(&points[i])
			if err != nil {
				return nil, err
			}
			list = append(list, File{"nccl-tests/" + points[i].ID + ".txt", text})
		}
	}
	return list, nil
}

func logFiles() ([]File, error) {
	var list []File
	for i, minor := range []int{12, 18, 20, 23, 24, 28, 30} {
		m := Machines()[i%5]
		j, err := NewJob(&m, minor, nil)
		if err != nil {
			return nil, err
		}
		list = append(list, File{fmt.Sprintf("nccl-log/2.%d-%s.log", minor, m.Name), j.Logs()})
	}
	return list, nil
}

func caseFiles() ([]File, error) {
	cases, err := Cases()
	if err != nil {
		return nil, err
	}
	var list []File
	for _, c := range cases {
		name := "cases/" + strings.ReplaceAll(c.Name, " ", "-")
		truth, err := json.Marshal(map[string]any{"synthetic": true, "case": c.Name, "finding": c.Want, "names": c.Who})
		if err != nil {
			return nil, err
		}
		list = append(list, File{name + "/truth.json", string(truth) + "\n"})
		for _, part := range []struct {
			folder string
			files  []File
		}{{"sick", c.Sick}, {"healthy", c.Healthy}} {
			for _, f := range part.files {
				list = append(list, File{path.Join(name, part.folder, f.Name), f.Text})
			}
		}
	}
	return list, nil
}
