// Package capture records what passes a link, as pcapng that Wireshark, tshark and rawlane dump open.
//
//	f, err := os.Create("run.pcapng")
//	file := capture.NewFile(f)
//	link, err = file.Wrap(link)         // is a transport.Link: use it in place of the other
//	...
//	err = errors.Join(link.Close(), file.Close(), f.Close())
//
// A frame is recorded whole, as it is on a wire but for the FCS: addresses, the 802.1Q tag (a priority tag with
// VID 0 as well), EtherType, payload. Links that share a File are its interfaces, under their names, so that one file
// shows a whole test. Timestamps are in nanoseconds: of sent frames, when Send has taken them; of received ones,
// when Poll hands them out.
//
// Recording costs a copy and the time of day per frame, and allocates nothing. If writing fails, recording ends and the traffic goes on:
// Close tells.
package capture
