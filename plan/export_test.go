package plan

import "busbar.dev/workload"

// Each visits every job of the space. The job is reused.
func (s *Space) Each(visit func(j *workload.Job)) {
	for _, d := range s.splits() {
		s.families(d, func(family *workload.Job) {
			s.branches(family, func(j *workload.Job) bool {
				for _, j.Bucket = range s.buckets(j) {
					visit(j)
				}
				return true
			})
		})
	}
}
