// Package program is the program in the kernel that counts the arrivals of barriers.
//
// Its source is offload.bpf.c. The objects beside it are what a build embeds, so that it needs no
// compiler for them. After a change of the source: go generate, with clang, llvm-strip and libbpf's
// headers (on Debian: apt-get install clang llvm libbpf-dev linux-libc-dev).
package program

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go@v0.22.0 -tags linux -cflags "-O2 -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu" offload offload.bpf.c
