// Package launch holds what starts a plan: which rank sits on which GPU of which host, the
// settings of NCCL with the reason for each, and the files that launchers and frameworks read.
//
// A Plan is written as plan.json, which `busbar exec` reads back on every node. The other files
// are filled in from it: texts has them as they look like (text/template), with a method of writer
// for what follows from several fields. Only what differs from a default is written, and what
// cannot be said in a file's format leaves that file out with a reason.
//
// Exec says what a process is bound and set to as one rank of a plan, or of a job without one; who
// asks does it.
//
// The package reads and writes values only: it opens no file, starts no program and touches no
// process.
//
// # Stability
//
// plan.json has a version (Version); fields are only ever added to it. Names of files stay, their texts follow what
// launchers and frameworks take.
package launch
