package predict

import (
	"busbar.dev/result"
	"busbar.dev/schedule"
)

// Rounds are the messages of a row round by round, with the load of every link; those of a schedule of one's own where
// there is one.
func (p *Predictor) Rounds(r *Row, own *schedule.Schedule) ([]result.Round, error) {
	op := r.operation()
	s := own
	if s == nil {
		var err error
		if s, err = p.Schedule(op, r.setting); err != nil {
			return nil, err
		}
	}
	return p.machine.Rounds(s, op, p.model(p.Figures, op, r.setting), p.ports(r.setting.Algo))
}
