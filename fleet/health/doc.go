// Package health says what is wrong with a fleet, and since when, from the history
// of what its nodes reported: rates of pairs measured in sweeps, heartbeats, states of
// ports and counters.
//
// The package is not promised: it may change with the program.
//
// A History takes observations one at a time and keeps them within bounds: samples and
// heartbeats in any order, states of ports and counters in their node's. Findings looks at
// what it holds and answers with causes, worst first.
//
// # Pairs
//
// Figures are logarithms, for faults are factors. What a pair shows in a sweep is taken
// relative to its class (the same types of node, the same sort of path) in the same
// sweep, so that a sweep during which everything was slow says nothing about anybody. The
// level of a class is an upper quantile of upper quantiles, because faults only ever slow
// things down: up to half of the nodes may be bad.
//
// Which cause explains the slow pairs is a question of likelihood over explanations: the
// set of causes (a node sending, receiving or both, a NIC of it, a leaf, two leaves, a rail, a
// pair, a direction of a pair) of the greatest gain less a penalty per cause, found greedily
// and compared with the best set that does without each cause. The difference is the
// confidence.
//
// A cause is reported once the sweeps agree: Page's cumulative sum of log-likelihood ratios
// (E. S. Page, Continuous inspection schemes, Biometrika 41, 1954), one sweep counting no
// more than the logarithm of how rarely a disturbance looks like that. It crosses a
// threshold that grows with the number of suspects; the sweep at which the sum began is when
// the fault did (D. V. Hinkley, Inference about the change-point from cumulative sum tests,
// Biometrika 58, 1971). A finding ends after three good sweeps in a row.
//
// A fleet that becomes slower as a whole has no better peers. Its level in sweeps that were measured
// alike is held against its own past; see slump.
//
// There is no clock, no goroutine and no file here. A History is for one goroutine at a time.
package health
