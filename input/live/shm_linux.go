package live

import (
	"fmt"
	"syscall"
)

// shmOf writes the size of a file system as df does.
func shmOf(path string) string {
	var s syscall.Statfs_t
	if err := syscall.Statfs(path, &s); err != nil {
		return ""
	}
	mib := s.Blocks * uint64(s.Bsize) >> 20
	free := s.Bfree * uint64(s.Bsize) >> 20
	return fmt.Sprintf("shm %dM %dM %dM 0%% %s\n", mib, mib-free, free, path)
}
