package schedule

// Message is what a lane of one participant sends to another, as both see it.
type Message struct {
	From, To, Lane int
	Sent, Taken    Op
}

// Messages are those of a schedule by round: before each of a round as many others must come.
func (s *Schedule) Messages() [][]Message {
	var rounds [][]Message
	read := map[conn]int{} // ops of the receiver's lane that were looked at
	Chains(s, func(a, b int) int { return max(a, b) }, func(at, from, lane int, o Op) (int, error) {
		for at >= len(rounds) {
			rounds = append(rounds, nil)
		}
		m := Message{From: from, To: int(o.Peer), Lane: lane, Sent: o}
		m.Taken = s.taken(read, &m)
		rounds[at] = append(rounds[at], m)
		return at + 1, nil
	})
	return rounds
}

// taken is the next receive of a message's lane from its sender.
func (s *Schedule) taken(read map[conn]int, m *Message) Op {
	key := connect(m.From, m.To, m.Lane)
	for read[key] < s.Len(m.To, m.Lane) {
		o := s.At(m.To, m.Lane, read[key])
		read[key]++
		if o.Verb.Receives() && int(o.Peer) == m.From {
			return o
		}
	}
	return Op{}
}

// conn is a connection: sender, receiver and lane in one number, which maps hash faster than a
// struct.
type conn uint64

const laneBits = 15

func connect(from, to, lane int) conn {
	return conn(from)<<(24+laneBits+1) | conn(to)<<laneBits | conn(lane)
}
