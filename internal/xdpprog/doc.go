// Package xdpprog is the programs that run in the kernel for links over AF_XDP.
//
// Their source is link.bpf.c. The objects beside it are what a build embeds, so that it needs no
// compiler for them. After a change of the source: go generate, with clang, llvm-strip and libbpf's
// headers (on Debian: apt-get install clang llvm libbpf-dev linux-libc-dev).
package xdpprog

//go:generate go run github.com/cilium/ebpf/cmd/bpf2go@v0.22.0 -tags linux -cflags "-O2 -Wall -Werror -mcpu=v3 -idirafter /usr/include/x86_64-linux-gnu" link link.bpf.c
