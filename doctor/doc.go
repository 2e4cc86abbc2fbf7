// Package doctor says why a job is slow, broken or hung, from evidence that
// people already have (package evidence).
//
// Every conclusion is a Rule: one row of a table with the evidence it needs, what
// it concludes, how sure it is, the fix, and which other findings it explains.
// Rules look at everything that was read at once, so that one may combine a line of
// NCCL's log with a kernel's message from another file. What a rule does not know
// it does not say: a finding quotes the lines it rests on, and suspicions that rest
// on what somebody told alone say so and are never errors.
//
// Findings that another finding explains are its consequences; roots come first,
// the surest and gravest at the head.
//
// # Adding a rule
//
// Write a function from *Case to *Finding (nil: it does not apply) in the file of
// its area and give it a row in Rules, with an id that is not taken: lower
// case, words joined by hyphens, naming the cause and not the symptom. Give the
// finding a confidence of about 0.9 where a line states the cause, 0.7 where two
// independent lines agree on it, 0.5 and below where it is the first of several
// things to check. What is only worth knowing, or is expected, is a Note. Then add
// a case to the tests, and one to the list of healthy texts if a healthy one has
// lines like those the rule looks for. docs/doctor.md lists the rules and is held
// against the table by a test.
package doctor
