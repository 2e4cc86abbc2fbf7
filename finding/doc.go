// Package finding is the one form in which busbar says that something is wrong:
// the audit of a cluster, the doctor's conclusions from logs, a table of measured
// pairs and the statistics of a fleet all return a Finding with a Severity.
//
// A Finding has what all of them know (an ID, a severity, a sentence, a fix) and
// what only some know (a confidence, evidence, nodes, a factor, since when). What
// is not known stays zero. The JSON of a finding has the keys, and their order,
// of the document that it belongs to; see [Finding.MarshalJSON].
//
// The package imports the standard library only. It is promised: fields are
// added, none is removed or changes its meaning.
package finding
