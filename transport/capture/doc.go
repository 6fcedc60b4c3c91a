// Package capture records the frames that pass a link, as pcapng that Wireshark, tshark and rawlane
// dump open.
//
//	f, err := os.Create("run.pcapng")
//	file := capture.NewFile(f)
//	link, err = file.Wrap(link) // is a transport.Link: use it in place of the other
//	...
//	err = errors.Join(link.Close(), file.Close(), f.Close())
//
// A frame is recorded whole, as it is on a wire but for padding and FCS:
//
//	destination | source | 0x8100 | TCI | EtherType | payload
//	                       ^^^^^^^^^^^^ the 802.1Q tag that the kernel or the NIC had taken off,
//	                                    if there was one: a priority tag (VID 0) too
//
// Links that share a File are its interfaces, under their names, so one file shows a whole test.
// Timestamps are the wall clock's, in nanoseconds: of sent frames, when the inner link has taken
// them; of received ones, when Poll hands them out. A frame between two recorded links may
// therefore stand in the file as received first and sent later.
//
// The order of wrappers decides what is recorded: inside a fault link, the frames from the wire;
// around one, the frames that its faults let through.
//
// Recording copies each frame, reads the time of day once per batch, and does not allocate. It
// takes 87 ns for a frame of 64 bytes, without the disk (go test -run '^$' -bench Record
// ./transport/capture). If writing fails, recording ends and the traffic goes on; Close returns the
// error. That is so, too, once the reader of a pipe or a connection has taken less than 64 KiB in
// five seconds: until then the traffic waits for it. For any other writer it waits for ever, and
// Close for ten seconds.
package capture
