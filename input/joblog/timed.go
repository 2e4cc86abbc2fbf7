package joblog

import (
	"strconv"

	"busbar.dev/internal/lazyre"
)

// timedLine is NCCL's account of how long a communicator took to make; the bootstrap is the wait for the other members.
var timedLine = lazyre.New(`Init timings - \w+: rank (\d+) nranks (\d+) total ([\d.]+) \(.*bootstrap ([\d.]+)`)

// timed reads how long the making of the process's last communicator took.
func (r *reader) timed(e Event, said string) {
	m := timedLine.FindStringSubmatch(said)
	if m == nil {
		return
	}
	e.Kind = InitTimed
	e.CommRank, _ = strconv.Atoi(m[1])
	e.NRanks, _ = strconv.Atoi(m[2])
	wait, err := strconv.ParseFloat(m[4], 64)
	if err != nil || wait < 0 || wait > 1e9 {
		return
	}
	e.Wait = wait
	for i := len(r.log.Events) - 1; i >= 0; i-- {
		if c := &r.log.Events[i]; c.Kind == InitComplete && c.PID == e.PID && c.Host == e.Host {
			e.Comm = c.Comm
			break
		}
	}
	r.addEvent(e)
}
