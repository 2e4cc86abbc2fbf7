package outfile

import (
	"os"
	"path/filepath"
	"strconv"

	"busbar.dev/internal/lazyre"
	"busbar.dev/internal/osdep"
)

var unfinishedName = lazyre.New(`^\.busbar-([0-9]{1,9})-[0-9]{1,3}$`)

// removeStale removes what processes left in a folder that were killed while they wrote: files
// with the names that begin gives, whose process is gone and that nobody holds. The lock tells
// of writers whose number says nothing here, in another container or on another machine. It is
// a courtesy: what it cannot do it leaves.
func removeStale(folder string) {
	const most = 10_000 // entries of a folder that are looked at
	d, err := os.Open(folder)
	if err != nil {
		return
	}
	defer d.Close()
	names, _ := d.Readdirnames(most)
	for _, name := range names {
		m := unfinishedName.FindStringSubmatch(name)
		if m == nil {
			continue
		}
		pid, err := strconv.Atoi(m[1])
		if err == nil && pid > 0 && osdep.Gone(pid) {
			removeUnheld(filepath.Join(folder, name))
		}
	}
}

// removeUnheld removes a plain file that no process has locked.
func removeUnheld(path string) {
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return
	}
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return
	}
	defer f.Close()
	if osdep.Lock(f, false) == nil {
		os.Remove(path)
	}
}
