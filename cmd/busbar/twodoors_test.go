package main

import (
	"bytes"
	"encoding/json"
	neturl "net/url"
	"strings"
	"testing"

	"busbar.dev/internal/test/freeport"
	"busbar.dev/query"
)

// TestPageAndCommand asks the page and the command for twenty pairs of machine and model: they give the same document
// to the byte, and where the job does not fit, the first line says so.
func TestPageAndCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("searches twenty plans twice")
	}
	page, end := served(t, t.TempDir(), "--no-fleet", "--bus-listen", freeport.Address(t))
	defer end()
	fits := 0
	for _, machine := range []string{"dgx-h100:2", "dgx-a100:4", "baskerville:4", "dgx-b200:2", "2x4090:2"} {
		for _, model := range []string{"gpt2-large", "llama3-8b", "llama3-70b", "llama3-405b"} {
			line, asked := "step -c "+machine+" -m "+model, neturl.Values{"c": {machine}, "m": {model}}
			if machine == "2x4090:2" {
				line += " --nic 10GbE"
				asked.Set("nic", "10GbE")
			}
			status, body := page("/api/step?" + asked.Encode())
			code, out, errs := calledAs(t, line+" --json")
			if status != 200 || code > exitWrong || string(body) != out {
				t.Errorf("%s: the page answers %d, the command exits with %d: %s\n%.2000s\n%.2000s", line, status, code, errs,
					body, out)
				continue
			}
			var doc query.StepDoc
			if err := json.NewDecoder(bytes.NewReader(body)).Decode(&doc); err != nil || len(doc.Rows) != 1 {
				t.Errorf("%s: %d rows, %v", line, len(doc.Rows), err)
				continue
			}
			if doc.Rows[0].Fits {
				fits++
				continue
			}
			if code, out, _ := calledAs(t, line); code != exitWrong || !strings.HasPrefix(out, "does not fit: ") {
				t.Errorf("%s: exit %d; expected 1, and that it does not fit: %.300s", line, code, out)
			}
		}
	}
	if fits < 10 || fits == 20 {
		t.Errorf("%d of 20 jobs fit; expected most and not all", fits)
	}
}
