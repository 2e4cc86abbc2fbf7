package workload

// Frameworks are all rows of the table: every framework by release, the oldest first.
func Frameworks() []Framework { return frameworks() }
