// Package cause weighs causes against what is known of a fault, and knows when that
// is too little.
//
// Causes are data: one YAML file each in causes/, with what would be seen, what helps
// against it, what says that it is in order, in which circumstances it happens, which
// observations show it (found), the fix and the test that confirms it. A user adds files
// of the same form without Go. How much evidence is worth is counted, not written down:
// records.csv holds how often it was right.
//
// The inference is naive Bayes with three amendments. There are two threads a cause
// to learn from, so no weight belongs to one cause: a sign's surprise is how seldom it
// is matched in threads of other causes, and what a matched sign is worth is shared by
// all. Signs of one cause depend on each other, so the second counts half of the first.
// And unknown is a hypothesis of its own, that wins where nothing speaks. The shared
// weights are fitted on threads that nobody read while the signs were written, which
// keeps the confidence honest; weights.csv holds them. A noisy-OR network would let
// several causes be true at once; people ask for one, and lines of logs that state a
// fault have the confidence of their record (see package doctor).
//
// Threads that nobody has seen use words that nobody thought of. So what is told is
// also compared, word by word and pair by pair, with threads of each cause
// (threads.csv), with what was said of their cause and fix, and with the cause's own
// description: cosines of vectors in which seldom words weigh more. Synonyms count as
// one word there, and what was recognised (symptom, place, time, who) as a word of its
// own. In signs synonyms do harm: they match too much. A comparison of remedies alone
// was tried and gained nothing.
package cause
