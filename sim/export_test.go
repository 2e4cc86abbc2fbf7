package sim

// Entire makes a machine ask every participant, however many there are, for tests that hold the count of equal nodes to it.
func Entire(m *Machine) *Machine {
	m.entire = true
	return m
}
