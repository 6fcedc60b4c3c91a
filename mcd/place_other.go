//go:build !linux

package mcd

import "runtime"

func bootID() string { return "" }

func usableCores() (set uint64, count int) { return allCores(runtime.NumCPU()), runtime.NumCPU() }
