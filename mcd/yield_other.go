//go:build !linux

package mcd

import "runtime"

func yield() { runtime.Gosched() }

func callNothing() {}
