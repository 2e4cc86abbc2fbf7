// Package pairs is about measuring every pair of ranks: in which rounds, and what
// the table of results says. It tells a slow host from a slow link from a pair that
// is slow one way, by what the others of the same row and column show.
//
// It measures nothing itself.
package pairs
