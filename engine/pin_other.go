//go:build !linux

package engine

// PinThread does nothing where threads cannot be kept on a processor.
func PinThread(int) (undo func()) { return func() {} }
