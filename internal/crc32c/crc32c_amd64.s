#include "textflag.h"

// To fold D bits further is to multiply by x^D, modulo the polynomial: the lower half of a lane, whose bits come first and
// so weigh more, by x^(D+64), the upper one by x^D. Bits are reflected, which shifts a product by one place; so the constants are those of
// x^(D+32) and x^(D-32), reflected, and shifted by one. TestConstants derives them.

DATA ·fold2048+0(SB)/8, $0x0dcb17aa4
DATA ·fold2048+8(SB)/8, $0x0b9e02b86
GLOBL ·fold2048(SB), RODATA|NOPTR, $16

DATA ·fold1536+0(SB)/8, $0x0a87ab8a8
DATA ·fold1536+8(SB)/8, $0x0ab7aff2a
GLOBL ·fold1536(SB), RODATA|NOPTR, $16

DATA ·fold1024+0(SB)/8, $0x06992cea2
DATA ·fold1024+8(SB)/8, $0x00d3b6092
GLOBL ·fold1024(SB), RODATA|NOPTR, $16

DATA ·fold512+0(SB)/8, $0x0740eef02
DATA ·fold512+8(SB)/8, $0x09e4addf8
GLOBL ·fold512(SB), RODATA|NOPTR, $16

// Each lane of the last 64 bytes by how far it is from the end: 384, 256, 128 bits. The last one stays as it is.
DATA ·foldLanes+0(SB)/8, $0x01c291d04
DATA ·foldLanes+8(SB)/8, $0x1d82c63da
DATA ·foldLanes+16(SB)/8, $0x1384aa63a
DATA ·foldLanes+24(SB)/8, $0x0ba4fc28e
DATA ·foldLanes+32(SB)/8, $0x0f20c0dfe
DATA ·foldLanes+40(SB)/8, $0x14cd00bd6
DATA ·foldLanes+48(SB)/8, $0
DATA ·foldLanes+56(SB)/8, $0
GLOBL ·foldLanes(SB), RODATA|NOPTR, $64

// FOLD multiplies the four lanes of z by k and adds what.
#define FOLD(k, z, what, free) \
	VPCLMULQDQ $0x00, k, z, free \
	VPCLMULQDQ $0x11, k, z, z    \
	VPTERNLOGD $0x96, what, free, z

// REST adds the CX bytes at SI to AX, a word at a time and then what is left of one by halves, and goes on at done.
#define REST \
	CMPQ   CX, $8     \
	JB     half       \
	CRC32Q (SI), AX   \
	ADDQ   $8, SI     \
	SUBQ   $8, CX     \
	JMP    words      \
half: \
	TESTB  $4, CX     \
	JZ     quarter    \
	CRC32L (SI), AX   \
	ADDQ   $4, SI     \
quarter: \
	TESTB  $2, CX     \
	JZ     last       \
	CRC32W (SI), AX   \
	ADDQ   $2, SI     \
last: \
	TESTB  $1, CX     \
	JZ     done       \
	CRC32B (SI), AX

// func register(crc uint32, p []byte) uint32
TEXT ·register(SB), NOSPLIT, $0-36
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	CMPQ CX, $256
	JB   words

	// Four times 64 bytes, side by side.
	VMOVD     AX, X4
	VPXORD    (SI), Z4, Z0
	VMOVDQU64 64(SI), Z1
	VMOVDQU64 128(SI), Z2
	VMOVDQU64 192(SI), Z3
	ADDQ      $256, SI
	SUBQ      $256, CX
	CMPQ      CX, $256
	JB        gather
	VBROADCASTI32X4 ·fold2048(SB), Z16

loop:
	FOLD(Z16, Z0, 0(SI), Z4)
	FOLD(Z16, Z1, 64(SI), Z5)
	FOLD(Z16, Z2, 128(SI), Z6)
	FOLD(Z16, Z3, 192(SI), Z7)
	ADDQ $256, SI
	SUBQ $256, CX
	CMPQ CX, $256
	JAE  loop

gather: // all into Z3
	VBROADCASTI32X4 ·fold1536(SB), Z16
	VBROADCASTI32X4 ·fold1024(SB), Z17
	VBROADCASTI32X4 ·fold512(SB), Z18
	FOLD(Z16, Z0, Z3, Z4)
	VPCLMULQDQ $0x00, Z17, Z1, Z5
	VPCLMULQDQ $0x11, Z17, Z1, Z1
	VPTERNLOGD $0x96, Z5, Z1, Z0
	FOLD(Z18, Z2, Z0, Z6)

blocks: // the rest, 64 bytes at a time; what was so far is in Z2
	CMPQ CX, $64
	JB   lanes
	FOLD(Z18, Z2, (SI), Z4)
	ADDQ $64, SI
	SUBQ $64, CX
	JMP  blocks

lanes: // four lanes into one
	VMOVDQU64 ·foldLanes(SB), Z16
	VPCLMULQDQ $0x00, Z16, Z2, Z4
	VPCLMULQDQ $0x11, Z16, Z2, Z5
	VPXORD    Z4, Z5, Z4
	VEXTRACTI32X4 $3, Z2, X5
	VEXTRACTI32X4 $2, Z4, X6
	VEXTRACTI32X4 $1, Z4, X7
	VPXORD    X4, X5, X5
	VPTERNLOGD $0x96, X6, X7, X5
	XORL      AX, AX // what is left is as good as a message of 16 bytes
	VMOVQ     X5, DX
	VPEXTRQ   $1, X5, BX
	CRC32Q    DX, AX
	CRC32Q    BX, AX
	VZEROUPPER

words:
	REST

done:
	MOVL AX, ret+32(FP)
	RET

// PART is maxPart, the most words of a part.
#define PART 256

// func three(crc uint32, p []byte, shifts *[2*maxPart + 1]uint64) uint32
TEXT ·three(SB), NOSPLIT, $0-44
	MOVL crc+0(FP), AX
	MOVQ p_base+8(FP), SI
	MOVQ p_len+16(FP), CX
	MOVQ shifts+32(FP), R8

pass: // three parts of equal length, side by side: each CRC32Q waits three cycles for the one before
	CMPQ    CX, $192
	JB      words
	MOVQ    CX, R9
	MOVQ    $(24*PART), R10
	CMPQ    R9, R10
	CMOVQHI R10, R9
	IMULQ   $43691, R9 // R9 is the words of a part: a twenty-fourth of the bytes
	SHRQ    $20, R9
	LEAQ    (SI)(R9*8), SI // the parts' ends
	LEAQ    (SI)(R9*8), DI
	LEAQ    (DI)(R9*8), R11
	XORL    BX, BX
	XORL    DX, DX
	MOVQ    R9, R12
	NEGQ    R12

loop:
	CRC32Q (SI)(R12*8), AX
	CRC32Q (DI)(R12*8), BX
	CRC32Q (R11)(R12*8), DX
	INCQ   R12
	JNZ    loop

	// The first part is as far from the end as two parts are long, the second one as one is.
	LEAQ      (R9)(R9*1), R12
	MOVQ      AX, X0
	MOVQ      BX, X1
	MOVQ      (R8)(R12*8), X2
	MOVQ      (R8)(R9*8), X3
	PCLMULQDQ $0x00, X2, X0
	PCLMULQDQ $0x00, X3, X1
	PXOR      X1, X0
	MOVQ      X0, BX
	XORL      AX, AX
	CRC32Q    BX, AX
	XORL      DX, AX
	MOVQ      R11, SI
	ADDQ      R9, R12
	SHLQ      $3, R12
	SUBQ      R12, CX
	JMP       pass

words:
	REST

done:
	MOVL AX, ret+40(FP)
	RET
