// Package fuzzseed makes fuzzing's corpus of a binary parser from messages that are right: it
// follows the format by itself, where files of bytes would be of an old version.
package fuzzseed

import "bytes"

// Variants returns a message, each beginning of it, and it with each byte changed: to 0, to 255, by
// one more, and by its highest bit.
func Variants(message []byte) (all [][]byte) {
	all = append(all, bytes.Clone(message))
	for i := range message {
		all = append(all, bytes.Clone(message[:i]))
		for _, change := range []func(byte) byte{
			func(byte) byte { return 0 }, func(byte) byte { return 255 },
			func(b byte) byte { return b + 1 }, func(b byte) byte { return b ^ 0x80 },
		} {
			v := bytes.Clone(message)
			v[i] = change(v[i])
			all = append(all, v)
		}
	}
	return all
}
