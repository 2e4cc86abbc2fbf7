package nccl

// rcclModels are kinds of nodes whose rings RCCL does not search but knows, in its order and by its number of them: the first that
// fits is taken. A ring is an order of GPUs with the NICs at its ends. Those of GPUs before MI250X are left out.
//
// Source: RCCL 2.21.5 src/graph/rome_models.cc (github.com/ROCm/rccl, 2024-10-24). Bus numbers, domains, links and distances
// are what it compares; they are those of one machine each.
var rcclModels = []rcclModel{
	{ // MI200 in one domain
		index: 20, cpus: 1, links: 3, pattern: "80", gpuIDs: "c1 c5 c9 cd d1 d5 d9 dd", gpuNUMA: "00000000",
		xgmi: "01100010 10010100 10011000 01100001 00100110 01001001 10001001 00010110", rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 6 7 3 2|2 3 7 6 4 5 1 0",
	},
	{ // MI250X, 16 dies, one node
		index: 24, cpus: 4, links: 4, pattern: "40404040", gpuIDs: "4e 51 56 59 e 11 16 19 cf d2 d7 da 8f 92 97 9a", gpuNUMA: "0000111122223333",
		xgmi:   rccl16,
		tuning: 1,
		rings: "0 1 3 2 6 7 15 14 10 11 9 8 12 13 5 4|0 1 2 3 7 6 13 12 8 9 10 11 15 14 5 4|0 2 3 7 6 14 15 11 10 8 9 13 12 4 5 1|" +
			"4 5 13 12 8 9 11 10 14 15 7 6 2 3 1 0|4 5 14 15 11 10 9 8 12 13 6 7 3 2 1 0|1 5 4 12 13 9 8 10 11 15 14 6 7 3 2 0",
	},
	{ // MI250, NPS4 with one domain for four dies
		index: 25, cpus: 3, links: 3, pattern: "402020", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110000",
		xgmi:  "01100010 10010100 10011000 01100001 00100110 01001001 10001001 00010110",
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 6 7 3 2|2 3 7 6 4 5 1 0",
	},
	{ // MI250X, 16 dies, 8 NICs behind PCIe switches
		index: 26, cpus: 4, links: 4, pattern: "42424242", gpuIDs: "4e 51 56 59 e 11 16 19 cf d2 d7 da 8f 92 97 9a", gpuNUMA: "0000111122223333", nicNUMA: "00112233",
		xgmi: rccl16, near: "BBBBSSSSSSSSSSSS BBBBSSSSSSSSSSSS SSSSBBBBSSSSSSSS SSSSBBBBSSSSSSSS SSSSSSSSBBBBSSSS SSSSSSSSBBBBSSSS SSSSSSSSSSSSBBBB SSSSSSSSSSSSBBBB",
		tuning: 4, ll128: true, baseBw: 161.4,
		rings: rccl16Rings,
	},
	{ // MI250 prototypes, 8 dies, one node
		index: 27, cpus: 4, links: 3, pattern: "20202020", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110022",
		xgmi:  "01100010 10010100 10011000 01100001 00100110 01001001 10001001 00010110",
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 6 7 3 2|2 3 7 6 4 5 1 0",
	},
	{ // the same with 4 NICs
		index: 28, cpus: 4, links: 3, pattern: "21212121", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110022", nicNUMA: "3102",
		xgmi: "01100010 10010100 10011000 01100001 00100110 01001001 10001001 00010110", near: "HHSSSSSS SSHHSSSS SSSSHHSS SSSSSSHH",
		times: 2, tuning: 3,
		rings: "N0 0 1 5 4 6 7 3 2 N1|N1 2 3 7 6 4 5 1 0 N0|N3 7 6 0 1 3 2 4 5 N2|N2 5 4 2 3 1 0 6 7 N3",
	},
	{ // as 26, NICs of a virtual machine
		index: 29, cpus: 4, links: 4, pattern: "42424242", gpuIDs: "4e 51 56 59 e 11 16 19 cf d2 d7 da 8f 92 97 9a", gpuNUMA: "0000111122223333", nicNUMA: "00112233",
		xgmi: rccl16, near: "HHHHSSSSSSSSSSSS HHHHSSSSSSSSSSSS SSSSHHHHSSSSSSSS SSSSHHHHSSSSSSSS SSSSSSSSHHHHSSSS SSSSSSSSHHHHSSSS SSSSSSSSSSSSHHHH SSSSSSSSSSSSHHHH",
		tuning: 4, ll128: true, baseBw: 161.4,
		rings: rccl16Rings,
	},
	{ // MI250X, 8 dies, one node
		index: 30, cpus: 2, links: 3, pattern: "4040", gpuIDs: "29 2c 2f 32 ad b0 b3 b6", gpuNUMA: "11113333",
		xgmi:    "04002010 40010001 00041020 01400100 20100400 00014001 10200004 01000140",
		anyNUMA: true, tuning: 2,
		rings: "0 6 7 5 4 2 3 1|1 3 2 4 5 7 6 0|0 1 7 6 2 3 5 4|4 5 3 2 6 7 1 0",
	},
	{ // MI250X, 8 dies, 4 NICs behind PCIe switches
		index: 31, cpus: 2, links: 3, pattern: "4242", gpuIDs: "29 2c 2f 32 ad b0 b3 b6", gpuNUMA: "11113333", nicNUMA: "1133",
		xgmi: "04002010 40010001 00041020 01400100 20100400 00014001 10200004 01000140", near: "BBBBSSSS BBBBSSSS SSSSBBBB SSSSBBBB",
		anyNUMA: true, tuning: 2,
		rings: "N3 7 6 0 1 3 2 4 5 N2|N2 5 4 2 3 1 0 6 7 N3|N1 2 3 5 4 0 1 7 6 N3|N2 4 5 3 2 6 7 1 0 N0|N1 3 2 4 5 7 6 0 1 N0|" +
			"N0 1 0 6 7 5 4 2 3 N1|N0 0 1 7 6 2 3 5 4 N2|N3 6 7 1 0 4 5 3 2 N1",
	},
	{ // MI250X, 8 dies, other boards
		index: 33, cpus: 2, links: 3, pattern: "4040", gpuIDs: "32 35 11 14 ae b3 8e 93", gpuNUMA: "00001111",
		xgmi:    "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140",
		anyNUMA: true, tuning: 2,
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 2 3 7 6|6 7 3 2 4 5 1 0",
	},
	{ // the same with 4 NICs on the host
		index: 34, cpus: 2, links: 3, pattern: "4242", gpuIDs: "32 35 11 14 ae b3 8e 93", gpuNUMA: "00001111", nicNUMA: "0011",
		xgmi: "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140", near: "HHHHSSSS HHHHSSSS SSSSHHHH SSSSHHHH",
		anyNUMA: true, tuning: 2,
		rings: "N0 0 1 3 2 4 5 7 6 N3|N1 2 3 1 0 6 7 5 4 N2|N3 7 6 0 1 5 4 2 3 N1|N0 1 0 6 7 3 2 4 5 N2|N2 4 5 7 6 0 1 3 2 N1|" +
			"N3 6 7 5 4 2 3 1 0 N0|N2 5 4 2 3 7 6 0 1 N0|N1 3 2 4 5 1 0 6 7 N3",
	},
	{ // MI250X as in Frontier and LUMI-G, one node
		index: 35, cpus: 4, links: 3, pattern: "20202020", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110022",
		xgmi:  "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140",
		rings: "0 1 3 2 4 5 7 6|6 7 5 4 2 3 1 0|0 1 5 4 6 7 3 2|2 3 7 6 4 5 1 0",
	},
	{ // the same with 4 NICs
		index: 36, cpus: 4, links: 3, pattern: "21212121", gpuIDs: "c1 c6 c9 ce d1 d6 d9 de", gpuNUMA: "33110022", nicNUMA: "3102",
		xgmi: "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140", near: "HHSSSSSS SSHHSSSS SSSSHHSS SSSSSSHH",
		times: 2, tuning: 3,
		rings: "N0 0 1 5 4 6 7 3 2 N1|N1 2 3 7 6 4 5 1 0 N0|N3 7 6 0 1 3 2 4 5 N2|N2 5 4 2 3 1 0 6 7 N3",
	},
	{ // MI250X, 8 dies, 8 NICs
		index: 37, cpus: 2, links: 3, pattern: "4444", gpuIDs: "32 35 11 14 ae b3 8e 93", gpuNUMA: "11113333", nicNUMA: "11113333",
		xgmi: "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140", near: "BBHHSSSS BBHHSSSS HHBBSSSS HHBBSSSS SSSSBBHH SSSSBBHH SSSSHHBB SSSSHHBB",
		anyNUMA: true, tuning: 3,
		rings: "N0 0 1 3 2 4 5 7 6 N6|N2 2 3 1 0 6 7 5 4 N4|N5 5 4 2 3 7 6 0 1 N1|N1 1 0 6 7 3 2 4 5 N5|N4 4 5 7 6 0 1 3 2 N2|" +
			"N2 2 3 1 0 6 7 5 4 N4|N0 0 1 5 4 2 3 7 6 N6|N3 3 2 4 5 1 0 6 7 N7|N4 4 5 7 6 0 1 3 2 N2|N6 6 7 5 4 2 3 1 0 N0|" +
			"N7 7 6 0 1 5 4 2 3 N3|N6 6 7 3 2 4 5 1 0 N0|N3 3 2 0 1 5 4 6 7 N7|N1 1 0 2 3 7 6 4 5 N5|N5 5 4 6 7 3 2 0 1 N1|" +
			"N7 7 6 4 5 1 0 2 3 N3",
	},
	{ // MI300X, MI325X, MI350X, MI355X, one node
		index: 38, cpus: 2, links: 7, pattern: "4040", gpuIDs: "1d 2e 3f 61 9f af bf df", gpuNUMA: "00001111",
		times: 2, anyCPU: true, tuning: 5, anyNUMA: true,
		rings: "0 1 2 3 4 5 6 7|0 1 2 3 4 5 7 6|0 2 4 1 3 6 5 7|0 2 4 6 1 7 3 5|0 3 1 5 2 7 4 6|0 3 5 1 6 2 7 4|0 4 1 7 3 6 2 5|7 6 5 4 3 2 1 0|" +
			"6 7 5 4 3 2 1 0|7 5 6 3 1 4 2 0|5 3 7 1 6 4 2 0|6 4 7 2 5 1 3 0|4 7 2 6 1 5 3 0|5 2 6 3 7 1 4 0",
	},
	{ // MI300A, 4 NICs
		index: 39, cpus: 4, links: 3, pattern: "11111111", gpuIDs: "82 c2 2 42", gpuNUMA: "2301", nicNUMA: "2301",
		xgmi: "0222 2022 2202 2220", near: "HSSS SHSS SSHS SSSH",
		rings: "N2 2 3 0 1 N1|N0 0 1 3 2 N2|N0 0 2 1 3 N3|N3 3 1 0 2 N2|N3 3 1 2 0 N0|N1 1 0 3 2 N2|N1 1 2 3 0 N0|N2 2 0 1 3 N3|N3 3 0 2 1 N1|" +
			"N2 2 3 1 0 N0|N1 1 2 0 3 N3|N0 0 3 2 1 N1",
	},
	{ // MI300X and later, a NIC for every GPU
		index: 40, cpus: 2, links: 7, pattern: "4444", gpuIDs: "c 22 38 5c 9f af bf df", gpuNUMA: "00001111", nicNUMA: "00001111",
		near:  "BHHHSSSS HBHHSSSS HHBHSSSS HHHBSSSS SSSSBHHH SSSSHBHH SSSSHHBH SSSSHHHB",
		times: 8, turn: true, anyCPU: true, tuning: 5, anyNUMA: true,
		rings: "N0 0 1 2 3 4 5 6 7 N7|N1 1 0 2 4 3 5 7 6 N6|N2 2 5 0 3 6 1 7 4 N4|N3 3 7 0 4 2 1 6 5 N5|N4 4 6 2 7 3 0 5 1 N1|" +
			"N5 5 4 7 1 3 2 6 0 N0|N6 6 3 1 4 0 7 5 2 N2|N7 7 2 0 6 4 1 5 3 N3",
		before: "N7 7 4 1 3 2 0 6 5 N5|N6 6 3 0 7 5 1 4 2 N2|N4 4 6 2 1 7 0 5 3 N3|N5 5 2 7 3 1 6 0 4 N4|N1 1 0 2 4 3 5 7 6 N6|" +
			"N0 0 1 2 3 4 5 6 7 N7|N2 2 5 0 3 6 4 7 1 N1|N3 3 7 2 6 1 5 4 0 N0",
		last: "N5 5 4 2 7 1 6 3 0 N0|N2 2 5 0 3 7 4 6 1 N1|N3 3 6 4 0 5 1 7 2 N2|N4 4 7 0 6 5 2 1 3 N3|N6 6 2 0 7 5 3 1 4 N4|" +
			"N7 7 3 2 6 0 4 1 5 N5|N1 1 0 2 4 3 5 7 6 N6|N0 0 1 2 3 4 5 6 7 N7",
	},
	{ // MI300X, 8 NICs of two ports
		index: 41, cpus: 2, links: 7, pattern: "4848", gpuIDs: "11 2f 46 5d 8b aa c2 da", gpuNUMA: "00001111", nicNUMA: "0000000011111111",
		near:   "BHHHSSSS BHHHSSSS HBHHSSSS HBHHSSSS HHBHSSSS HHBHSSSS HHHBSSSS HHHBSSSS SSSSBHHH SSSSBHHH SSSSHBHH SSSSHBHH SSSSHHBH SSSSHHBH SSSSHHHB SSSSHHHB",
		anyCPU: true, tuning: 5,
		rings: "N0 0 1 2 3 4 5 6 7 N14|N2 1 0 2 4 3 5 7 6 N12|N4 2 5 0 3 7 1 6 4 N8|N6 3 6 1 5 2 7 4 0 N0|N8 4 7 0 6 5 1 3 2 N4|" +
			"N10 5 4 6 3 0 7 2 1 N2|N12 6 2 0 4 1 7 5 3 N6|N14 7 3 1 4 2 6 0 5 N10|N1 0 1 2 3 4 5 6 7 N15|N3 1 0 2 4 3 5 7 6 N13|" +
			"N5 2 5 0 3 7 1 6 4 N9|N7 3 6 1 5 2 7 4 0 N1|N9 4 7 0 6 5 1 3 2 N5|N11 5 4 6 3 0 7 2 1 N3|N13 6 2 0 4 1 7 5 3 N7|" +
			"N15 7 3 1 4 2 6 0 5 N11",
	},
	{ // MI250X, 8 dies, 4 NICs, two dies each
		index: 42, cpus: 2, links: 3, pattern: "4242", gpuIDs: "32 35 11 14 ae b3 8e 93", gpuNUMA: "00001111", nicNUMA: "0011",
		xgmi: "04100020 40010100 10042000 01400001 00200410 01004001 20001004 00010140", near: "BBHHSSSS HHBBSSSS SSSSBBHH SSSSHHBB",
		tuning: 2,
		rings: "N0 0 1 3 2 4 5 7 6 N3|N1 2 3 1 0 6 7 5 4 N2|N3 7 6 0 1 5 4 2 3 N1|N0 1 0 6 7 3 2 4 5 N2|N2 4 5 7 6 0 1 3 2 N1|" +
			"N3 6 7 5 4 2 3 1 0 N0|N2 5 4 2 3 7 6 0 1 N0|N1 3 2 4 5 1 0 6 7 N3",
	},
	{ // MI300X, 4 NICs
		index: 43, cpus: 2, links: 7, pattern: "4242", gpuIDs: "a 80 a4 c8 10b 181 1a5 1c9", gpuNUMA: "00001111", nicNUMA: "0110",
		near:  "HHHBSSSS SSSSHHBH SSSSBHHH HBHHSSSS",
		times: 8, turn: true, anyCPU: true, pairs: true,
		rings: "N3 0 1 2 3 4 5 6 7 N1|N3 1 0 2 4 3 5 7 6 N1|N0 2 5 0 3 6 1 7 4 N2|N0 3 7 0 4 2 1 6 5 N2|N2 4 6 2 7 3 0 5 1 N3|" +
			"N2 5 4 7 1 3 2 6 0 N3|N1 6 3 1 4 0 7 5 2 N0|N1 7 2 0 6 4 1 5 3 N0",
		before: "N1 6 3 1 4 0 7 5 2 N0|N1 7 2 0 6 4 1 5 3 N0|N2 4 6 2 7 3 0 5 1 N3|N2 5 4 7 1 3 2 6 0 N3|N3 0 1 2 3 4 5 6 7 N1|" +
			"N3 1 0 2 4 3 5 7 6 N1|N0 2 5 0 3 6 1 7 4 N2|N0 3 7 0 4 2 1 6 5 N2",
		last: "N0 2 1 3 4 5 6 7 0 N3|N0 3 0 2 4 6 5 7 1 N3|N3 0 1 4 7 5 3 6 2 N0|N3 1 0 5 2 7 6 4 3 N0|N1 6 1 2 3 5 0 7 4 N2|" +
			"N1 7 3 2 6 0 4 1 5 N2|N2 4 0 3 7 2 5 1 6 N1|N2 5 4 2 0 6 3 1 7 N1",
	},
}

// rccl16 is how many links join the sixteen dies of eight MI250X.
const rccl16 = "0410200000000000 4011010000000000 1104001000000000 0140000200000000 2000040000001000 0100400000000110 0010000400000110 0002004000000001 0000000004102000 0000000040110100 0000000011040010 0000000001400002 0000100020000400 0000011001004000 0000011000100004 0000000100020040"

// rccl16Rings are their rings with a NIC for two dies.
const rccl16Rings = "N4 9 8 12 13 5 4 0 1 3 2 6 7 15 14 10 11 N5|N1 3 2 6 7 15 14 10 11 9 8 12 13 5 4 0 1 N0|" +
	"N3 7 6 2 3 1 0 4 5 13 12 8 9 11 10 14 15 N7|N7 15 14 10 11 9 8 12 13 5 4 0 1 3 2 6 7 N3|" +
	"N5 11 10 14 15 7 6 2 3 1 0 4 5 13 12 8 9 N4|N0 1 0 4 5 13 12 8 9 11 10 14 15 7 6 2 3 N1|" +
	"N3 6 7 3 2 1 0 4 5 14 15 11 10 9 8 12 13 N6|N7 14 15 11 10 9 8 12 13 6 7 3 2 1 0 4 5 N2|" +
	"N2 5 4 0 1 2 3 7 6 13 12 8 9 10 11 15 14 N7|N6 13 12 8 9 10 11 15 14 5 4 0 1 2 3 7 6 N3|" +
	"N4 8 9 13 12 4 5 1 0 2 3 7 6 14 15 11 10 N5|N5 10 11 15 14 6 7 3 2 0 1 5 4 12 13 9 8 N4|" +
	"N6 12 13 9 8 10 11 15 14 6 7 3 2 0 1 5 4 N2|N2 4 5 1 0 2 3 7 6 14 15 11 10 8 9 13 12 N6|" +
	"N1 2 3 7 6 14 15 11 10 8 9 13 12 4 5 1 0 N0|N0 0 1 5 4 12 13 9 8 10 11 15 14 6 7 3 2 N1|" +
	"N5 10 11 9 8 12 13 5 4 0 1 3 2 6 7 15 14 N7|N3 6 7 15 14 10 11 9 8 12 13 5 4 0 1 3 2 N1|" +
	"N1 2 3 1 0 4 5 13 12 8 9 11 10 14 15 7 6 N3|N7 14 15 7 6 2 3 1 0 4 5 13 12 8 9 11 10 N5|" +
	"N0 0 1 2 3 7 6 13 12 8 9 10 11 15 14 5 4 N2|N4 8 9 10 11 15 14 5 4 0 1 2 3 7 6 13 12 N6|" +
	"N3 7 6 13 12 8 9 10 11 15 14 5 4 0 1 2 3 N1|N1 3 2 1 0 4 5 14 15 11 10 9 8 12 13 6 7 N3|" +
	"N6 12 13 6 7 3 2 1 0 4 5 14 15 11 10 9 8 N4|N2 4 5 14 15 11 10 9 8 12 13 6 7 3 2 1 0 N0|" +
	"N0 1 0 2 3 7 6 14 15 11 10 8 9 13 12 4 5 N2|N6 13 12 4 5 1 0 2 3 7 6 14 15 11 10 8 9 N4|" +
	"N5 11 10 8 9 13 12 4 5 1 0 2 3 7 6 14 15 N7|N2 5 4 12 13 9 8 10 11 15 14 6 7 3 2 0 1 N0|" +
	"N7 15 14 6 7 3 2 0 1 5 4 12 13 9 8 10 11 N5|N4 9 8 10 11 15 14 6 7 3 2 0 1 5 4 12 13 N6"
