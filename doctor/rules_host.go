package doctor

// hostRules are about limits and containers that no other area holds.
func hostRules() []Rule { return nil }
