// Package evidence reads whatever people have (logs of NCCL inside logs of
// launchers, outputs of tools, environments, scripts, tracebacks, what they wrote
// about it) into observations: what was seen, by whom, how often, and in which
// lines.
//
// A text is read once, line by line, and not kept. Lines are first searched for
// the words of all recognisers at once (package internal/keywords); a recogniser
// whose word is there looks closer and names what it saw. Equal observations of
// many ranks are one Observation with a count, the hosts and ranks, and the first
// few lines, so that a log of gigabytes needs little memory. Records of NCCL are
// parsed once, by the scanner of input/nccllog, whose log of the job takes the same
// lines. Up to a size, the text also goes to all of package input, whose fragments
// join into one cluster.
//
// The package extracts and does not judge: what observations mean together is
// the business of package doctor.
//
// # Adding a recogniser
//
// A recogniser is a row of lines.csv: the kind of observation, the words of which one must stand in
// the line, and a pattern whose groups become the arguments of the observation.
package evidence
