// Package calibrate makes predictions of collectives those of a user's own machines: by curves of measured over
// predicted, each for what it was measured on, and the launches and links that hold for more.
//
// What does not agree with its repeat or its neighbours does not count, a run that no healthy cluster has is refused,
// and what would not predict sizes that are left out better is not kept.
package calibrate
