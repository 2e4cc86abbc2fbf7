package device

// State is what a GPU's driver says of it. A pointer is nil, and a text empty, where the driver did not say.
type State struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	UUID  string `json:"uuid"`
	PCI   string `json:"pci"`
	// Vendor is amd; empty is NVIDIA's.
	Vendor string `json:"vendor,omitempty"`
	Lost   string `json:"lost,omitempty"` // why it does not answer

	SM        *int     `json:"sm_mhz,omitempty"`
	MaxSM     *int     `json:"sm_max_mhz,omitempty"`
	Memory    *int     `json:"memory_mhz,omitempty"`
	MaxMemory *int     `json:"memory_max_mhz,omitempty"`
	Throttle  []string `json:"throttle,omitempty"` // reasons for lower clocks, as nvidia-smi calls them

	Power        *float64 `json:"power_W,omitempty"`
	PowerLimit   *float64 `json:"power_limit_W,omitempty"`
	DefaultLimit *float64 `json:"power_default_W,omitempty"`
	Temperature  *int     `json:"temperature_C,omitempty"`
	SlowAt       *int     `json:"slowdown_C,omitempty"`

	ECC         *bool  `json:"ecc,omitempty"`
	Corrected   *int64 `json:"ecc_corrected,omitempty"`   // since the driver was loaded
	Uncorrected *int64 `json:"ecc_uncorrected,omitempty"` // since the driver was loaded
	// Rows of memory that were replaced after errors, that wait for a reset to be, and that could not be.
	Remapped     *int  `json:"rows_remapped,omitempty"`
	RemapPending *bool `json:"remap_pending,omitempty"`
	RemapFailed  *bool `json:"remap_failed,omitempty"`
	// Pages of memory that were retired after errors, as GPUs before Ampere do, and whether some wait for the driver to
	// be loaded anew.
	Retired       *int  `json:"pages_retired,omitempty"`
	RetirePending *bool `json:"retire_pending,omitempty"`

	PCIeGen      *int `json:"pcie_generation,omitempty"`
	MaxPCIeGen   *int `json:"pcie_max_generation,omitempty"`
	PCIeWidth    *int `json:"pcie_width,omitempty"`
	MaxPCIeWidth *int `json:"pcie_max_width,omitempty"`
	Replays      *int `json:"pcie_replays,omitempty"`

	NVLinks    []NVLink `json:"nvlinks,omitempty"`
	Fabric     string   `json:"fabric,omitempty"` // not supported, not started, in progress, completed, completed: failed …
	Persistent *bool    `json:"persistence,omitempty"`

	Utilization *int   `json:"utilization_percent,omitempty"`
	Processes   *int   `json:"processes,omitempty"`
	Users       []User `json:"users,omitempty"` // those processes, but for the one that answers
	Used        *int64 `json:"memory_used_bytes,omitempty"`
	Total       *int64 `json:"memory_total_bytes,omitempty"`
}

// User is a process that computes on a GPU.
type User struct {
	PID  int    `json:"pid"`
	Name string `json:"name,omitempty"` // "" where it is of another container
}

// NVLink is one of a GPU's links.
type NVLink struct {
	Link   int    `json:"link"`
	Active bool   `json:"active"`
	Errors *int64 `json:"errors,omitempty"` // replays, recoveries and CRC errors together
}
