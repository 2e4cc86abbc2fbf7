package engine

import "syscall"

// hugePage is the size of a huge page on most machines; on others it is only an alignment.
const hugePage = 2 << 20

// wantHuge asks for huge pages. Vectors are read from end to end, by the kernel too, and finding
// one small page after the other takes a few percent of the time.
func wantHuge(b []byte) {
	const madvHugePage = 14
	syscall.Madvise(b, madvHugePage) // a wish
}
