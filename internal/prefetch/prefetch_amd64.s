#include "textflag.h"

// func Read(p []byte)
TEXT ·Read(SB), NOSPLIT, $0-24
	MOVQ p_base+0(FP), SI
	MOVQ p_len+8(FP), CX
	ADDQ SI, CX
	ANDQ $~63, SI

line:
	CMPQ SI, CX
	JAE  done
	PREFETCHT0 (SI)
	ADDQ $64, SI
	JMP  line

done:
	RET
