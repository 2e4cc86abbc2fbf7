package gpustate

import "testing"

const sample = `# HELP DCGM_FI_DEV_XID_ERRORS Value of the last XID error encountered.
DCGM_FI_DEV_XID_ERRORS{gpu="3",UUID="GPU-1",pci_bus_id="00000000:1B:00.0",device="nvidia3",Hostname="node7"} 79
DCGM_FI_DEV_XID_ERRORS{gpu="4",UUID="GPU-2",Hostname="node7"} 0
==============NVSMI LOG==============
GPU 00000000:00:06.0
    ECC Errors
        Volatile
            SRAM Correctable                           : 0
            DRAM Uncorrectable                         : 2
        Aggregate
            DRAM Uncorrectable                         : 9
<nvidia_smi_log>
<gpu id="00000000:00:07.0">
<volatile>
<dram_uncorrectable>1</dram_uncorrectable>
</volatile>
Unable to determine the device handle for GPU0000:1B:00.0: GPU is lost.  Reboot the system to recover this GPU
name, ecc.errors.uncorrected.volatile.total, x
NVIDIA H200, 4, 0
NVIDIA H200, 0, 0
`

func TestRead(t *testing.T) {
	if !Match([]byte(sample)) {
		t.Error("not recognised")
	}
	list := Read([]byte(sample))
	if len(list) != 5 {
		t.Fatalf("%d troubles: %+v", len(list), list)
	}
	if x := list[0]; x.Xid != 79 || x.GPU != 3 || x.Host != "node7" || x.Line != 2 {
		t.Errorf("%+v", x)
	}
	if list[1].Bus != "00000000:00:06.0" || list[2].Bus != "00000000:00:07.0" || !list[3].Lost || list[4].Line != 19 {
		t.Errorf("%+v", list[1:])
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(sample))
	f.Fuzz(func(_ *testing.T, data []byte) { Read(data) })
}
