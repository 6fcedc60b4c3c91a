#include "textflag.h"

// func Read(p []byte)
TEXT ·Read(SB), NOSPLIT, $0-24
	MOVD p_base+0(FP), R0
	MOVD p_len+8(FP), R1
	ADD  R0, R1
	BIC  $63, R0

line:
	CMP  R1, R0
	BHS  done
	PRFM (R0), PLDL1KEEP
	ADD  $64, R0
	B    line

done:
	RET
