//go:build !linux

package ranks

// pinThread does nothing where threads cannot be kept on a processor.
func pinThread(int) (undo func()) { return func() {} }
