package evidence

// What busbar's own programs print: bench, and whatever else runs on its engine.
const (
	RankDied   Kind = "rank-died"   // rank, host
	RankSilent Kind = "rank-silent" // rank, host, how long
	LocalDial  Kind = "local-dial"  // address it speaks from, address it wants, reason
	NotCome    Kind = "not-come"    // ranks that did not come to the meeting
	EngineRun  Kind = "engine-run"  // ranks, transport, algorithm
)

// seenBusbar are the lines of busbar's engine and bench.
func seenBusbar() []seen {
	return []seen{
		{kind: RankDied, words: "died: its connections closed", pattern: `rank (\d+) \(([\w.:-]+), pid \d+\) died`},
		{kind: RankSilent, words: "has been silent for", pattern: `rank (\d+) \(([\w.:-]+), pid \d+\) has been silent for ([\d.]+ ?\w+)`},
		{kind: LocalDial, words: "dial tcp ", pattern: `dial tcp ([\da-f.:]+|\[[\da-f:]+\]):0->([\d.]+|\[[\da-f:]+\]):\d+: (?:connect: )?([a-z ]+)`},
		{kind: NotCome, words: "did not come", pattern: `ranks? (\d[\d, ]*) did not come`},
		{kind: EngineRun, words: "ranks on CPUs, transport", pattern: `Using (\d+) ranks on CPUs, transport (\w+), algorithm (\w+)`},
	}
}
