// Package cause weighs causes against what is known of a fault, and knows when that is too little.
//
// A cause is a file of causes/: what happens, the printed facts that show it (found), its remedies and how each is
// spelled, what says that it is something else (ok), the fix, and the command that confirms it. A user adds files of
// the same form without Go, and they are ranked at once: the weights belong to kinds of evidence, not to causes.
//
// A cause's score is the sum of five things:
//
//   - the facts that detectors of package doctor found, by the grade of the evidence;
//   - the ledger of what was tried: a remedy that worked promotes its cause, one in vain, or that was in place
//     before, vetoes it whatever else speaks for it;
//   - how much what is told resembles threads whose cause is known, and the cause's own text: the nearest of them;
//   - how likely all texts of the cause together make its words;
//   - how often it was the cause.
//
// That it is none of the known causes is a hypothesis of its own. A dozen weights (weights.csv) are fitted on collected
// threads, each left out of what it is compared with.
// A tuned vocabulary for each cause was tried and dropped: it gained two points on threads of its own authors and
// nothing on those of others.
package cause
