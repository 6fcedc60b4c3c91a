package diagnose

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
	"github.com/rawlane/rawlane/transport/udp"
)

// dumpVerb prints the messages in a capture.
type dumpVerb struct {
	json      bool
	all       bool
	payload   int
	etherType uint16
	udpPort   uint16
	ports     []string // name=port

	out                     *bufio.Writer
	capture                 captureReader
	first                   time.Time
	messages, faulty, other int
}

// NewDumpCommand returns the verb dump.
func NewDumpCommand() *cobra.Command {
	d := &dumpVerb{}
	cmd := &cobra.Command{
		Use:   "dump FILE [flags]",
		Short: "Print the messages in a capture (pcapng or pcap; - reads the standard input)",
		Long: `Prints one line per message: time since the first frame, interface if there are several, addresses,
VLAN tag, and the message; behind it, what remote memory, connections, calls and barriers say in it: operations,
records of streams, requests and responses, who is awaited and who is gone; and what nodes say that
find each other and exchange data at their start. Messages that passed the kernel together
(trains) have a line each, with one frame's number; so have those of links over UDP, in datagrams that
tcpdump has captured. What is not as the wire format wants it is marked, with the reason for which a
node would have dropped it. Frames of other protocols, and of interfaces that are not Ethernet, are
counted, or shown with --all.

  rawlane dump run.pcapng
  rawlane dump run.pcapng --port rpc=17
  tcpdump -i eth0 -U -w - | rawlane dump -`,
		Args: cli.Arguments(1, 1, "want one capture file, or - for the standard input"),
		RunE: d.run,
	}
	f := cmd.Flags()
	f.BoolVar(&d.json, "json", false, "print one JSON object per message")
	f.BoolVar(&d.all, "all", false, "show frames of other protocols, too")
	f.IntVar(&d.payload, "payload", 16, "show this many bytes of each payload, or of each record's data")
	f.Uint16Var(&d.etherType, "ethertype", uint16(transport.EtherTypeDefault),
		"EtherType of the messages: others' are frames of other protocols")
	f.Uint16Var(&d.udpPort, "udp-port", udp.DefaultPort, "UDP port of links over UDP (0: none)")
	f.StringSliceVar(&d.ports, "port", nil,
		"port of "+recordPorts+", as NAME=PORT, if it is not the default")
	f.Lookup("ethertype").DefValue = fmt.Sprintf("%#04x", uint16(transport.EtherTypeDefault))
	return cmd
}

func (d *dumpVerb) validate() error {
	if d.etherType < 0x0600 {
		return cli.Misuse("--ethertype %#04x: want 0x0600 or more (below, it is a length)", d.etherType)
	}
	if d.payload < 0 {
		return cli.Misuse("--payload %d: want 0 or more", d.payload)
	}
	for _, p := range d.ports {
		if err := registerPort(p); err != nil {
			return err
		}
	}
	return nil
}

func (d *dumpVerb) run(cmd *cobra.Command, args []string) error {
	if err := d.validate(); err != nil {
		return err
	}
	decode.Register(transport.EtherType(d.etherType))
	if d.udpPort != 0 {
		decode.RegisterDatagrams(d.udpPort)
	}
	d.out = bufio.NewWriter(cmd.OutOrStdout())
	in := cmd.InOrStdin()
	if args[0] != "-" {
		var f *os.File // read only if it has opened: a FIFO does once another program writes to it
		err := cli.Compute(cmd.Context(), func() (err error) {
			f, err = os.Open(args[0])
			return err
		})
		if err != nil {
			return err
		}
		defer f.Close()
		in = f
	}
	in, stop := untilInterrupted(cmd.Context(), in)
	defer stop()
	err := d.print(&flushing{in, d.out})
	if interrupted := cmd.Context().Err(); err != nil && interrupted != nil {
		err = errors.Join(d.sum(), interrupted)
	} else if err != nil {
		err = fmt.Errorf("%s: %w", args[0], err)
	}
	if unwritten := d.out.Flush(); unwritten != nil { // which reading the capture found out, perhaps
		return errors.Join(unwritten, cmd.Context().Err())
	}
	return err
}

// flushing is a capture before each read of which, for which it may wait, what was printed is there
// to be seen.
type flushing struct {
	in  io.Reader
	out *bufio.Writer
}

// Read implements io.Reader.
func (f *flushing) Read(b []byte) (int, error) {
	if err := f.out.Flush(); err != nil {
		return 0, err
	}
	return f.in.Read(b)
}

// lastFrames is how long what still comes is printed after an interrupt: a tcpdump that writes to
// this command hears of it, too, and gives away what it has.
const lastFrames = time.Second

// untilInterrupted is what in has, until its end, or until lastFrames after ctx's. A read of in may
// go on after stop.
func untilInterrupted(ctx context.Context, in io.Reader) (r io.Reader, stop func()) {
	all, w := io.Pipe()
	go func() { // until in ends, or the process
		_, err := io.Copy(w, in)
		_ = w.CloseWithError(err) // it cannot fail
	}()
	stopped, end := context.WithCancel(context.Background())
	unnoted := context.AfterFunc(ctx, func() {
		select {
		case <-time.After(lastFrames):
			_ = w.CloseWithError(ctx.Err()) // likewise
		case <-stopped.Done():
		}
	})
	return all, func() { unnoted(); end(); _ = all.Close() }
}

// print prints a capture.
func (d *dumpVerb) print(r io.Reader) error {
	capture, err := openCapture(r)
	if err != nil {
		return err
	}
	d.capture = capture
	for n := 1; ; n++ {
		data, info, err := nextPacket(capture)
		if errors.Is(err, io.EOF) {
			break
		}
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return fmt.Errorf("frame %d: %w (is the file cut off?)", n, err)
		}
		if err != nil {
			return fmt.Errorf("frame %d: %w", n, err)
		}
		if err := d.frame(n, data, info); err != nil {
			return err
		}
	}
	if err := capture.hasEthernet(); err != nil {
		return err
	}
	return d.sum()
}

// sum prints how many frames there were.
func (d *dumpVerb) sum() error {
	if d.json {
		return nil
	}
	_, err := fmt.Fprintf(d.out, "%d messages, %d of them faulty; %d other frames\n", d.messages, d.faulty, d.other)
	return err
}

// frame prints the messages of a frame, each with the headers before it.
func (d *dumpVerb) frame(n int, data []byte, info gopacket.CaptureInfo) error {
	if d.first.IsZero() {
		d.first = info.Timestamp
	}
	link := linkType(info)
	p := gopacket.NewPacket(data, link, gopacket.DecodeOptions{Lazy: false, NoCopy: true})
	f := &dumpFrame{n: n, Packet: p, info: info}
	found := false
	for _, l := range p.Layers() { // several of a train
		f.pass(l)
		if m, is := l.(*decode.Message); is && d.isOurs(f, link) {
			found = true
			if err := d.message(f, m); err != nil {
				return err
			}
		}
	}
	e := p.ErrorLayer()
	if e != nil && errors.Is(e.Error(), decode.ErrFault) && d.isOurs(f, link) { // too short for a header
		return d.message(f, nil)
	}
	if found {
		return nil
	}
	d.other++
	if !d.all {
		return nil
	}
	return d.write(f, nil)
}

// isOurs says whether a message is of the EtherType that is asked for, on Ethernet.
func (d *dumpVerb) isOurs(f *dumpFrame, link layers.LinkType) bool {
	return link == layers.LinkTypeEthernet && f.behind == d.etherType
}

// message counts and prints a message; m is nil if it is too short for a header.
func (d *dumpVerb) message(f *dumpFrame, m *decode.Message) error {
	d.messages++
	if (m == nil || m.Fault != nil) && !f.inPart(m) {
		d.faulty++
	}
	return d.write(f, m)
}

// write prints one line: a message, or a frame without one.
func (d *dumpVerb) write(f *dumpFrame, m *decode.Message) error {
	r := d.record(f, m)
	if d.json {
		return cli.WriteJSON(d.out, r)
	}
	_, err := fmt.Fprintf(d.out, "%5d %12.6f %s%s: %s\n", f.n, f.info.Timestamp.Sub(d.first).Seconds(),
		d.capture.nameOf(f.info.InterfaceIndex), r.addresses(), r.describe(f, m))
	return err
}
