package fleet

// Settled is what a server tells all agents that connect under one name. Without names of agents it is a roll
// call: whoever hears it beats at once, so that a second agent shows before it has said anything.
type Settled struct {
	GoesOn  string `json:"goes_on,omitempty"`  // Beat.Agent of the one that was first
	GivesUp string `json:"gives_up,omitempty"` // and of the one that came later
	// Up is for how long the first has run, Later the other, in seconds.
	Up    float64 `json:"up_s,omitempty"`
	Later float64 `json:"later_up_s,omitempty"`
	Meet  string  `json:"meet,omitempty"` // where the first is found
}
