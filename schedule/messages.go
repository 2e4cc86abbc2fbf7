package schedule

// Message is what a lane of one participant sends to another.
type Message struct {
	From, To, Lane int
	Chunks         int
	Reduces        bool // the receiver adds it to what it has
}

// Messages are those of a schedule by round: before each of a round as many others must come.
func (s *Schedule) Messages() [][]Message {
	var rounds [][]Message
	read := map[conn]int{} // ops of the receiver's lane that were looked at
	Chains(s, func(a, b int) int { return max(a, b) }, func(at, from, lane int, o Op) (int, error) {
		for at >= len(rounds) {
			rounds = append(rounds, nil)
		}
		to := int(o.Peer)
		rounds[at] = append(rounds[at], Message{from, to, lane, o.Len(), s.reduces(read, from, to, lane)})
		return at + 1, nil
	})
	return rounds
}

// reduces reports whether the next receive of a lane from a participant adds what comes.
func (s *Schedule) reduces(read map[conn]int, from, to, lane int) bool {
	key := connect(from, to, lane)
	for read[key] < s.Len(to, lane) {
		o := s.At(to, lane, read[key])
		read[key]++
		if o.Verb.Receives() && int(o.Peer) == from {
			return o.Verb == RecvReduce
		}
	}
	return false
}
