//go:build !linux

package cpuset

func processors() []processor { return nil }
