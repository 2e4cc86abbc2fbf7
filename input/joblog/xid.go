package joblog

// XidMeaning is what NVIDIA's catalogue says about a code, and whether it is the hardware's fault: then the GPU needs
// somebody, and not only the program.
func XidMeaning(code int) (text string, hardware bool) {
	switch code {
	case 13:
		return "graphics engine exception, mostly the program's own", false
	case 31:
		return "memory page fault, mostly the program's own", false
	case 43:
		return "GPU stopped processing, the program's own error", false
	case 45:
		return "channels taken down after another error", false
	case 48:
		return "double-bit ECC error: the GPU needs a reset", true
	case 63:
		return "row remapping: a reset completes it", true
	case 64:
		return "row remapping failed: replace the GPU where it returns", true
	case 74:
		return "NVLink error", true
	case 79:
		return "GPU has fallen off the bus: drain the node", true
	case 92, 94, 95:
		return "uncorrectable ECC error: reset the GPU", true
	case 119, 120:
		return "GSP firmware does not answer: reset the GPU", true
	}
	return "see NVIDIA's Xid catalogue", false
}
