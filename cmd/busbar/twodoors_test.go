package main

import (
	"encoding/json"
	neturl "net/url"
	"strings"
	"testing"

	"busbar.dev/internal/test/freeport"
)

// TestPageAndCommand asks the page and the command for twenty pairs of machine and model, by every question about a
// job: they give the same document to the byte, and all questions one time of a step. Where the job does not fit, both
// say so first and give no time.
func TestPageAndCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("searches two hundred plans")
	}
	t.Parallel()
	page, end := served(t, t.TempDir(), "--no-fleet", "--bus-listen", freeport.Address(t))
	defer end()
	fits := 0
	for _, machine := range []string{"dgx-h100:2", "dgx-a100:4", "baskerville:4", "dgx-b200:2", "2x4090:2"} {
		for _, model := range []string{"gpt2-large", "llama3-8b", "llama3-70b", "llama3-405b"} {
			if (&pair{t, page, machine, model}).sameAnswers() {
				fits++
			}
		}
	}
	if fits < 10 || fits == 20 {
		t.Errorf("%d of 20 jobs fit; expected most and not all", fits)
	}
}

// pair is a machine and a model, and how the page is asked about them.
type pair struct {
	t              *testing.T
	page           func(path string) (status int, body []byte)
	machine, model string
}

// timed is what documents of questions about a job have of the time of its step.
type timed struct {
	timedRow
	Rows  []timedRow `json:"rows"`
	Plans []timedRow `json:"plans"`
	Now   *timedRow  `json:"now"`
	Take  *timedRow  `json:"take"`
}

type timedRow struct {
	Step float64 `json:"step_s"`
	Fits bool    `json:"fits"`
}

// sameAnswers asks all questions at both doors, and reports whether the job fits.
func (p *pair) sameAnswers() bool {
	_, nodes, _ := strings.Cut(p.machine, ":")
	p.asked("predict", "size", "1G")
	step := p.asked("step", "m", p.model)
	if len(step.Rows) != 1 {
		p.t.Fatalf("%s on %s: %d rows", p.model, p.machine, len(step.Rows))
	}
	now := step.Rows[0].Step
	times := map[string]float64{}
	if x := p.asked("need", "m", p.model); x.Now != nil {
		times["need"] = x.Now.Step
	}
	if x := p.asked("plan", "m", p.model); len(x.Plans) > 0 {
		times["plan"] = x.Plans[0].Step
	}
	if x := p.asked("goodput", "m", p.model); x.Step > 0 {
		times["goodput"] = x.Step
	}
	if x := p.asked("place", "m", p.model, "nodes", nodes); x.Take != nil {
		times["place"] = x.Take.Step
	}
	for question, is := range times {
		if is != now {
			p.t.Errorf("%s on %s: a step takes %v by %s and %v by step", p.model, p.machine, is, question, now)
		}
	}
	if fits := step.Rows[0].Fits; fits != (len(times) == 4) || fits != (now > 0) {
		p.t.Errorf("%s on %s: fits is %v, a step takes %v, and %v have a time", p.model, p.machine, fits, now, times)
	}
	return step.Rows[0].Fits
}

// asked is the document of a question, which is the same at both doors. Fields are pairs of name and value.
func (p *pair) asked(question string, fields ...string) (doc timed) {
	fields = append(fields, "c", p.machine)
	if p.machine == "2x4090:2" {
		fields = append(fields, "nic", "10GbE")
	}
	line, address := question+" --json", neturl.Values{}
	for i := 0; i < len(fields); i += 2 {
		line += " " + strings.Repeat("-", min(2, len(fields[i]))) + fields[i] + " " + fields[i+1]
		address.Set(fields[i], fields[i+1])
	}
	status, body := p.page("/api/" + question + "?" + address.Encode())
	code, out, errs := calledAs(p.t, line)
	const no = "does not fit: "
	switch {
	case status == 200 && code <= exitWrong && string(body) == out:
		if err := json.Unmarshal(body, &doc); err != nil {
			p.t.Error(line, err)
		}
	case status == 400 && code == exitWrong && strings.Contains(errs, "busbar: "+no) &&
		strings.Contains(string(body), `"error":"`+no):
	default:
		p.t.Errorf("%s: the page answers %d, the command exits with %d: %s\n%.2000s\n%.2000s", line, status, code, errs,
			body, out)
	}
	if code == exitWrong && question == "step" {
		if _, out, _ := calledAs(p.t, strings.Replace(line, " --json", "", 1)); !strings.HasPrefix(out, no) {
			p.t.Errorf("%s: expected that it does not fit: %.300s", line, out)
		}
	}
	return doc
}
