package xsk

// frame returns the bytes that a descriptor stands for, in memory of chunks of a size, and the
// address of their chunk. ok is false if they do not lie within one chunk: the kernel writes no
// such descriptor, but memory that two share is not to be trusted with an index.
func frame(memory []byte, chunkSize int, d Desc) (b []byte, chunk uint64, ok bool) {
	chunk = d.Addr &^ uint64(chunkSize-1)
	offset := d.Addr - chunk
	if d.Addr >= uint64(len(memory)) || uint64(d.Len) > uint64(chunkSize)-offset {
		return nil, 0, false
	}
	end := d.Addr + uint64(d.Len)
	return memory[d.Addr:end:end], chunk, true
}
