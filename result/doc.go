// Package result is what comes back when a collective was simulated, run or
// measured: one record for all three, so that a prediction can be laid beside a
// measurement without translation.
//
// A Run is one collective of one size. It may carry the events of every rank and
// lane; a prediction carries what limited it.
package result
