package nvsmi

import "strings"

// plainText is what nvidia-smi -q prints of two GPUs, shortened.
const plainText = `
==============NVSMI LOG==============

Timestamp                                 : Thu Nov 12 09:44:31 2026
Driver Version                            : 570.124.06

Attached GPUs                             : 2
GPU 00000000:0A:00.0
    Product Name                          : NVIDIA A100
    MIG Mode
        Current                           : Disabled
        Pending                           : Disabled
    GPU UUID                              : ` + uuidA + `
    PCI
        Bus                               : 0x0A
        Device Id                         : 0x20B010DE
        Bus Id                            : 00000000:0A:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 4
                Device Current            : 4
            Link Width
                Max                       : 16x
                Current                   : 8x
        Bridge Chip
            Type                          : N/A
    FB Memory Usage
        Total                             : 40960 MiB
        Used                              : 12 MiB
    BAR1 Memory Usage
        Total                             : 65536 MiB
    Processes                             : None

GPU 00000000:0B:00.0
    GPU UUID                              : ` + uuidB + `
    GPU C2C Mode                          : Enabled
`

func prefixed(with, text string) string {
	return with + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+with) + "\n"
}
