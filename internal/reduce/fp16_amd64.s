#include "textflag.h"

// AVX512-FP16 is not known to Go's assembler, nor to avo. These are VADDPH and
// VMULPH of Z(i+4) into Zi, and VCMPPH for "unordered" into a mask.
#define ADD0 BYTE $0x62; BYTE $0xf5; BYTE $0x7c; BYTE $0x48; BYTE $0x58; BYTE $0xc4
#define ADD1 BYTE $0x62; BYTE $0xf5; BYTE $0x74; BYTE $0x48; BYTE $0x58; BYTE $0xcd
#define ADD2 BYTE $0x62; BYTE $0xf5; BYTE $0x6c; BYTE $0x48; BYTE $0x58; BYTE $0xd6
#define ADD3 BYTE $0x62; BYTE $0xf5; BYTE $0x64; BYTE $0x48; BYTE $0x58; BYTE $0xdf
#define MUL0 BYTE $0x62; BYTE $0xf5; BYTE $0x7c; BYTE $0x48; BYTE $0x59; BYTE $0xc4
#define MUL1 BYTE $0x62; BYTE $0xf5; BYTE $0x74; BYTE $0x48; BYTE $0x59; BYTE $0xcd
#define MUL2 BYTE $0x62; BYTE $0xf5; BYTE $0x6c; BYTE $0x48; BYTE $0x59; BYTE $0xd6
#define MUL3 BYTE $0x62; BYTE $0xf5; BYTE $0x64; BYTE $0x48; BYTE $0x59; BYTE $0xdf

// UNORDab_k: mask k of the lanes where Za or Zb is a NaN.
#define UNORD00_1 BYTE $0x62; BYTE $0xf3; BYTE $0x7c; BYTE $0x48; BYTE $0xc2; BYTE $0xc8; BYTE $0x03
#define UNORD01_1 BYTE $0x62; BYTE $0xf3; BYTE $0x7c; BYTE $0x48; BYTE $0xc2; BYTE $0xc9; BYTE $0x03
#define UNORD23_2 BYTE $0x62; BYTE $0xf3; BYTE $0x6c; BYTE $0x48; BYTE $0xc2; BYTE $0xd3; BYTE $0x03
#define UNORD11_3 BYTE $0x62; BYTE $0xf3; BYTE $0x74; BYTE $0x48; BYTE $0xc2; BYTE $0xd9; BYTE $0x03
#define UNORD22_4 BYTE $0x62; BYTE $0xf3; BYTE $0x6c; BYTE $0x48; BYTE $0xc2; BYTE $0xe2; BYTE $0x03
#define UNORD33_5 BYTE $0x62; BYTE $0xf3; BYTE $0x64; BYTE $0x48; BYTE $0xc2; BYTE $0xeb; BYTE $0x03

// KERNEL is the frame of the generated kernels: four vectors, one vector, a
// masked rest. Z8 holds the one NaN.
#define KERNEL(OP0, OP1, OP2, OP3) \
	MOVQ         dst+0(FP), AX;         \
	MOVQ         a+8(FP), CX;           \
	MOVQ         b+16(FP), DX;          \
	MOVQ         n+24(FP), BX;          \
	MOVL         $0x7fff7fff, SI;       \
	VMOVD        SI, X8;                \
	VPBROADCASTD X8, Z8;                \
many:                                \
	CMPQ         BX, $256;              \
	JB           few;                   \
	VMOVDQU64    (CX), Z0;              \
	VMOVDQU64    (DX), Z4;              \
	VMOVDQU64    64(CX), Z1;            \
	VMOVDQU64    64(DX), Z5;            \
	VMOVDQU64    128(CX), Z2;           \
	VMOVDQU64    128(DX), Z6;           \
	VMOVDQU64    192(CX), Z3;           \
	VMOVDQU64    192(DX), Z7;           \
	OP0;                                \
	OP1;                                \
	OP2;                                \
	OP3;                                \
	UNORD01_1;                          \
	UNORD23_2;                          \
	KORTESTD     K1, K2;                \
	JNZ          mend;                  \
back:                                \
	VMOVDQU64    Z0, (AX);              \
	VMOVDQU64    Z1, 64(AX);            \
	VMOVDQU64    Z2, 128(AX);           \
	VMOVDQU64    Z3, 192(AX);           \
	ADDQ         $256, AX;              \
	ADDQ         $256, CX;              \
	ADDQ         $256, DX;              \
	SUBQ         $256, BX;              \
	JMP          many;                  \
few:                                 \
	CMPQ         BX, $64;               \
	JB           tail;                  \
	VMOVDQU64    (CX), Z0;              \
	VMOVDQU64    (DX), Z4;              \
	OP0;                                \
	UNORD00_1;                          \
	VMOVDQU16    Z8, K1, Z0;            \
	VMOVDQU64    Z0, (AX);              \
	ADDQ         $64, AX;               \
	ADDQ         $64, CX;               \
	ADDQ         $64, DX;               \
	SUBQ         $64, BX;               \
	JMP          few;                   \
tail:                                \
	TESTQ        BX, BX;                \
	JZ           done;                  \
	MOVQ         $-1, SI;               \
	BZHIQ        BX, SI, SI;            \
	KMOVQ        SI, K6;                \
	VMOVDQU8.Z   (CX), K6, Z0;          \
	VMOVDQU8.Z   (DX), K6, Z4;          \
	OP0;                                \
	UNORD00_1;                          \
	VMOVDQU16    Z8, K1, Z0;            \
	VMOVDQU8     Z0, K6, (AX);          \
done:                                \
	VZEROUPPER;                         \
	RET;                                \
mend:                                \
	UNORD00_1;                          \
	UNORD11_3;                          \
	UNORD22_4;                          \
	UNORD33_5;                          \
	VMOVDQU16    Z8, K1, Z0;            \
	VMOVDQU16    Z8, K3, Z1;            \
	VMOVDQU16    Z8, K4, Z2;            \
	VMOVDQU16    Z8, K5, Z3;            \
	JMP          back

// func sumF16FP16(dst, a, b *byte, n int)
TEXT ·sumF16FP16(SB), NOSPLIT, $0-32
	KERNEL(ADD0, ADD1, ADD2, ADD3)

// func prodF16FP16(dst, a, b *byte, n int)
TEXT ·prodF16FP16(SB), NOSPLIT, $0-32
	KERNEL(MUL0, MUL1, MUL2, MUL3)

// func cpuid(leaf, sub uint32) (eax, ebx, ecx, edx uint32)
TEXT ·cpuid(SB), NOSPLIT, $0-24
	MOVL leaf+0(FP), AX
	MOVL sub+4(FP), CX
	CPUID
	MOVL AX, eax+8(FP)
	MOVL BX, ebx+12(FP)
	MOVL CX, ecx+16(FP)
	MOVL DX, edx+20(FP)
	RET
