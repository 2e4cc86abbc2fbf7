package evidence

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"

	"busbar.dev/finding"
	"busbar.dev/input"
)

// FleetFinding is a fault that the statistics of a fleet name, as `busbar fleet nodes --json` and
// the server's /api/fleet/findings print it, and the file that it was read from.
type FleetFinding struct {
	File string
	finding.Finding
}

const (
	maxFleetFindings = 10_000
	maxFleetText     = 4096 // bytes of one sentence

	unread = "health-check-unread" // the kind of an answer that cannot be read to its end
)

// answer takes a text that is a fleet's answer from end to end, before its lines are looked at: it
// quotes what agents ran into, which is no word of the job's. Any other text it gives back whole.
func (r *Reader) answer(in *bufio.Reader) (*bufio.Reader, bool, error) {
	head, _ := in.Peek(1 << 12)
	start, list := bytes.CutPrefix(bytes.TrimSpace(head), []byte("["))
	if list {
		start = bytes.TrimSpace(start)
	}
	if !bytes.HasPrefix(start, []byte("{")) {
		return in, false, nil
	}
	data, err := io.ReadAll(io.LimitReader(in, maxWhole))
	if err != nil {
		return nil, false, err
	}
	if r.fleet(data) {
		return nil, true, nil
	}
	return bufio.NewReaderSize(io.MultiReader(bytes.NewReader(data), in), 1<<16), false, nil
}

// fleet reads what the server of a fleet answers: its findings. What another health check says of a node is as good.
func (r *Reader) fleet(data []byte) bool {
	text := bytes.TrimSpace(data)
	if x, err := input.Health.As(r.name, text); x != nil {
		r.health(x.([]finding.Finding))
		if err == nil {
			r.document = true
			r.set.Lines += bytes.Count(text, []byte("\n")) + 1
			return true
		}
		// It may as well be a log with such an answer in it.
		r.set.Fleet = append(r.set.Fleet, FleetFinding{r.name, finding.Finding{
			ID: unread, Kind: unread, Severity: finding.Warn, Confidence: 1,
			Text: "The answer of another health check cannot be read: " + err.Error(),
			Fix:  "give the whole answer in a file of its own",
		}})
	}
	if !bytes.HasPrefix(text, []byte("{")) {
		return false
	}
	return bytes.Contains(text, []byte(`"findings"`)) && r.fleetFindings(text)
}

// health takes in what another health check found.
func (r *Reader) health(found []finding.Finding) {
	r.set.Judged = true
	for _, f := range found {
		r.set.Fleet = append(r.set.Fleet, FleetFinding{r.name, f})
	}
}

// fleetFindings reads the list of faults; other documents have findings of another shape.
func (r *Reader) fleetFindings(text []byte) bool {
	var d struct {
		Findings []finding.Finding  `json:"findings"`
		Nodes    *[]json.RawMessage `json:"nodes"`
		Past     *[]json.RawMessage `json:"past"`
	}
	if json.Unmarshal(text, &d) != nil || len(d.Findings) == 0 && d.Nodes == nil && d.Past == nil ||
		len(d.Findings) > maxFleetFindings {
		return false
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.ID == "" || f.Kind == "" || f.Text == "" || len(f.Text)+len(f.Fix) > maxFleetText ||
			!(f.Confidence >= 0 && f.Confidence <= 1) {
			return false
		}
	}
	for _, f := range d.Findings {
		r.set.Fleet = append(r.set.Fleet, FleetFinding{r.name, f})
	}
	r.document = true
	return true
}
