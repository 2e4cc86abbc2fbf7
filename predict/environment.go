package predict

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// heeded are the settings of NCCL that a prediction follows: those that package
// nccl, the simulator and the ports of a predictor read.
var heeded = strings.Fields(`
	NCCL_ALGO NCCL_COLLNET_ENABLE NCCL_COLLNET_NODE_THRESHOLD NCCL_CROSS_NIC NCCL_IB_DISABLE NCCL_IB_HCA NCCL_IB_MERGE_NICS
	NCCL_LL128_C2C NCCL_LL128_NTHREADS NCCL_MAX_CTAS NCCL_MAX_NCHANNELS NCCL_MAX_NRINGS NCCL_MAX_P2P_NCHANNELS NCCL_MIN_CTAS
	NCCL_MIN_NCHANNELS NCCL_MIN_NRINGS NCCL_MIN_P2P_NCHANNELS NCCL_MNNVL_ENABLE NCCL_MNNVL_SCATTER_NETS_ENABLE
	NCCL_NCHANNELS_PER_NET_PEER NCCL_NET NCCL_NET_DISABLE_INTRA NCCL_NET_FORCE_MERGE NCCL_NET_GDR_C2C NCCL_NET_GDR_LEVEL
	NCCL_NET_MERGE_LEVEL NCCL_NET_OVERHEAD NCCL_NTHREADS NCCL_NVB_DISABLE NCCL_NVLS_ENABLE NCCL_NVLS_NCHANNELS NCCL_P2P_DISABLE
	NCCL_P2P_LEVEL NCCL_P2P_PXN_LEVEL NCCL_PAT_ENABLE NCCL_PROTO NCCL_PXN_C2C NCCL_PXN_DISABLE NCCL_SHM_DISABLE
	NCCL_SOCKET_IFNAME NCCL_THREAD_THRESHOLDS`)

// weighty are those that may change how fast a job runs and that the model does
// not know.
var weighty = strings.Fields(`
	NCCL_BUFFSIZE NCCL_CGA_CLUSTER_SIZE NCCL_CHUNK_SIZE NCCL_CTA_POLICY NCCL_DMABUF_ENABLE NCCL_GDRCOPY_ENABLE NCCL_GDRCOPY_FLUSH_ENABLE
	NCCL_GDRCOPY_SYNC_ENABLE NCCL_GRAPH_FILE NCCL_GRAPH_REGISTER NCCL_HOSTID NCCL_IB_ADAPTIVE_ROUTING NCCL_IB_AR_THRESHOLD
	NCCL_IB_CUDA_SUPPORT NCCL_IB_GDR_LEVEL NCCL_IB_PCI_RELAXED_ORDERING NCCL_IB_QPS_PER_CONNECTION NCCL_IB_SL
	NCCL_IB_SPLIT_DATA_ON_QPS NCCL_IB_TC NCCL_IGNORE_CPU_AFFINITY NCCL_IGNORE_DISABLED_P2P NCCL_L1_SHARED_MEMORY_CARVEOUT
	NCCL_LAUNCH_MODE NCCL_LL128_BUFFSIZE NCCL_LL_BUFFSIZE NCCL_LL_THRESHOLD NCCL_LOCAL_REGISTER NCCL_MAX_DYNAMIC_SMEM
	NCCL_MEM_SYNC_DOMAIN NCCL_MNNVL_CLIQUE_ID NCCL_MNNVL_CROSS_CLIQUE NCCL_MNNVL_UUID NCCL_NETDEVS_POLICY NCCL_NET_GDR_READ
	NCCL_NET_MERGE_POLICY NCCL_NET_PLUGIN NCCL_NET_SHARED_BUFFERS NCCL_NET_SHARED_COMMS NCCL_NSOCKS_PERTHREAD
	NCCL_NVLSTREE_MAX_CHUNKSIZE NCCL_NVLS_CHUNKSIZE NCCL_P2P_DIRECT_DISABLE NCCL_P2P_LL_THRESHOLD NCCL_P2P_NET_CHUNKSIZE
	NCCL_P2P_NVL_CHUNKSIZE NCCL_P2P_PCI_CHUNKSIZE NCCL_P2P_USE_CUDA_MEMCPY NCCL_PROXY_APPEND_BATCH_SIZE NCCL_PROXY_CPUSET
	NCCL_SHM_LOCALITY NCCL_SHM_MEMCPY_MODE NCCL_SHM_USE_CUDA_MEMCPY NCCL_SINGLE_RING_THRESHOLD NCCL_SOCKET_INLINE
	NCCL_SOCKET_MIN_TASKSIZE NCCL_SOCKET_NTHREADS NCCL_SYM_CTAS NCCL_TOPO_FILE NCCL_TREE_THRESHOLD NCCL_TUNER_CONFIG_FILE
	NCCL_TUNER_PLUGIN NCCL_WIN_ENABLE NCCL_WORK_ARGS_BYTES NCCL_WORK_FIFO_BYTES`)

// idle are those that say what to print, how to meet or when to give up.
var idle = strings.Fields(`
	NCCL_BLOCKING_WAIT NCCL_CHECKS_DISABLE NCCL_CHECK_MODE NCCL_CHECK_POINTERS NCCL_COLLNET_PLUGIN NCCL_COMM_BLOCKING NCCL_COMM_ID
	NCCL_COMM_SHRINK_SHARE_RESOURCES NCCL_COMM_SPLIT_SHARE_RESOURCES NCCL_CONF_FILE NCCL_CREATE_THREAD_CONTEXT NCCL_CUMEM_ENABLE
	NCCL_CUMEM_HOST_ENABLE NCCL_DEBUG NCCL_DEBUG_FILE NCCL_DEBUG_SUBSYS NCCL_DEBUG_TIMESTAMP_FORMAT NCCL_DEBUG_TIMESTAMP_LEVELS
	NCCL_ENV_PLUGIN NCCL_GIN_ENABLE NCCL_GIN_TYPE NCCL_GRAPH_DUMP_FILE NCCL_GRAPH_DUMP_FILE_RANK NCCL_GRAPH_HELPER_DISABLE
	NCCL_GRAPH_MIXING_SUPPORT NCCL_IB_ADDR_FAMILY NCCL_IB_ADDR_RANGE NCCL_IB_ECE_ENABLE NCCL_IB_FIFO_TC NCCL_IB_GID_INDEX
	NCCL_IB_MQP_RETRY_ALL NCCL_IB_MQP_RETRY_CNT NCCL_IB_MQP_RETRY_SLEEP_MSEC NCCL_IB_PKEY NCCL_IB_RETRY_CNT
	NCCL_IB_RETURN_ASYNC_EVENTS NCCL_IB_ROCE_VERSION_NUM NCCL_IB_TIMEOUT NCCL_IB_USE_INLINE NCCL_IB_WARN_RAIL_LOCAL
	NCCL_IGNORE_COLLNET_MISMATCH NCCL_IGNORE_NET_MISMATCH NCCL_INSPECTOR_DUMP_DIR NCCL_INSPECTOR_ENABLE NCCL_LAUNCH_ORDER_IMPLICIT
	NCCL_LAUNCH_RACE_FATAL NCCL_LEGACY_CUDA_REGISTER NCCL_MULTI_RANK_GPU_ENABLE NCCL_OOB_NET_ENABLE NCCL_OOB_NET_IFNAME
	NCCL_PROFILER_PLUGIN NCCL_PROXY_DUMP_SIGNAL NCCL_PROXY_PROFILE NCCL_RAS_ADDR NCCL_RAS_ENABLE NCCL_RAS_TIMEOUT_FACTOR
	NCCL_REPORT_CONNECT_PROGRESS NCCL_RUNTIME_CONNECT NCCL_SET_CPU_STACK_SIZE NCCL_SET_STACK_SIZE NCCL_SET_THREAD_NAME
	NCCL_SOCKET_FAMILY NCCL_SOCKET_POLL_TIMEOUT_MSEC NCCL_SOCKET_RETRY_CNT NCCL_SOCKET_RETRY_SLEEP_MSEC NCCL_TOPO_DUMP_FILE
	NCCL_TOPO_DUMP_FILE_RANK NCCL_UID_STAGGER_RATE NCCL_UID_STAGGER_THRESHOLD NCCL_WARN_ENABLE_DEBUG_INFO`)

// EnvironmentNotes tells of settings that a prediction does not follow, a sentence
// each: a slip of the pen must not look like a setting without effect.
func EnvironmentNotes(env map[string]string) []string {
	var notes []string
	for _, key := range slices.Sorted(maps.Keys(env)) {
		switch {
		case slices.Contains(heeded, key):
		case slices.Contains(weighty, key):
			notes = append(notes, key+" does not change this prediction: the model does not know it, though it may change the "+
				"job's speed")
		case slices.Contains(idle, key):
			notes = append(notes, key+" does not change this prediction")
		default:
			text := key + " is not known and does not change this prediction"
			if near := nearest(key); near != "" {
				text = fmt.Sprintf("%s is not known and does not change this prediction; similar: %s", key, near)
			}
			notes = append(notes, text)
		}
	}
	return notes
}

// Unmodelled tells whether a setting may change how fast a job runs and is none that a prediction follows.
func Unmodelled(key string) bool {
	return !slices.Contains(heeded, key) && !slices.Contains(idle, key) && strings.HasPrefix(key, "NCCL_")
}

// Misspelt is the setting of NCCL that a name is a letter or two from, "" where
// NCCL knows the name itself or none is near.
func Misspelt(key string) string {
	for _, list := range [][]string{heeded, weighty, idle} {
		if slices.Contains(list, key) {
			return ""
		}
	}
	return nearest(key)
}

// nearest is the setting that a slip of one or two letters would make the key, or
// none.
func nearest(key string) string {
	best, least := "", 3
	for _, list := range [][]string{heeded, weighty, idle} {
		for _, k := range list {
			if d := editDistance(strings.ToUpper(key), k); d < least {
				best, least = k, d
			}
		}
	}
	return best
}

// editDistance is how many letters have to be put in, left out or replaced to turn one
// word into the other.
func editDistance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		corner := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := corner
			if a[i] != b[j] {
				cost++
			}
			corner = row[j+1]
			row[j+1] = min(cost, corner+1, row[j]+1)
		}
	}
	return row[len(b)]
}
