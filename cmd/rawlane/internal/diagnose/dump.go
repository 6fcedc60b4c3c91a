package diagnose

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/google/gopacket"
	"github.com/google/gopacket/layers"
	"github.com/google/gopacket/pcapgo"
	"github.com/spf13/cobra"

	"github.com/rawlane/rawlane/cmd/rawlane/internal/cli"
	"github.com/rawlane/rawlane/mcd/decode"
	"github.com/rawlane/rawlane/transport"
)

// dumpVerb prints the messages in a capture.
type dumpVerb struct {
	json      bool
	all       bool
	payload   int
	etherType uint16
	ports     []string // name=port

	out                     *bufio.Writer
	first                   time.Time
	messages, faulty, other int
}

// NewDumpCommand returns the verb dump.
func NewDumpCommand() *cobra.Command {
	d := &dumpVerb{}
	cmd := &cobra.Command{
		Use:   "dump FILE [flags]",
		Short: "Print the messages in a capture (pcapng or pcap; - reads the standard input)",
		Long: `Prints one line per message: time since the first frame, interface, addresses, VLAN tag, and the
message; behind it, what remote memory, connections, calls and barriers say in it: operations,
records of streams, requests and responses, who is awaited and who is gone; and what nodes say that
find each other and exchange data at their start. Messages that passed the kernel together
(trains) have a line each, with one frame's number. What a node would have dropped is marked, with
the reason. Frames of other protocols are counted, or shown with --all.

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
	f.Uint16Var(&d.etherType, "ethertype", uint16(transport.EtherTypeDefault), "EtherType of the messages")
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

// captureReader is the part that pcapgo's two readers share.
type captureReader interface {
	ReadPacketData() ([]byte, gopacket.CaptureInfo, error)
	LinkType() layers.LinkType
}

// pcapngMagic is the type of the first block of a pcapng file.
var pcapngMagic = []byte{0x0a, 0x0d, 0x0d, 0x0a}

// openCapture chooses the reader by the first bytes.
func openCapture(r io.Reader) (_ captureReader, err error) {
	defer malformed(&err)
	in := bufio.NewReader(r)
	magic, err := in.Peek(4)
	switch {
	case errors.Is(err, io.EOF):
		return nil, errors.New("not a capture: it has fewer than four bytes")
	case err != nil:
		return nil, err
	}
	if bytes.Equal(magic, pcapngMagic) {
		ng, err := pcapgo.NewNgReader(&wholeBlocks{r: in}, pcapgo.DefaultNgReaderOptions)
		if err != nil {
			return nil, fmt.Errorf("not a capture that can be read: %w", err)
		}
		return ng, nil
	}
	classic, err := pcapgo.NewReader(in)
	if err != nil {
		return nil, fmt.Errorf("neither pcapng nor pcap: %w (want a file of --capture, or of tcpdump -w)", err)
	}
	if classic.Snaplen() > maxBlock {
		return nil, fmt.Errorf("malformed: it says that frames may have %d bytes", classic.Snaplen())
	}
	return classic, nil
}

// print prints a capture.
func (d *dumpVerb) print(r io.Reader) error {
	capture, err := openCapture(r)
	if err != nil {
		return err
	}
	if t := capture.LinkType(); t != layers.LinkTypeEthernet {
		return fmt.Errorf("captured on %v, want Ethernet", t)
	}
	for n := 1; ; n++ {
		data, info, err := nextPacket(capture)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("frame %d: %w (is the file cut off?)", n, err)
		}
		if err := d.frame(n, data, info); err != nil {
			return err
		}
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

func (d *dumpVerb) frame(n int, data []byte, info gopacket.CaptureInfo) error {
	if d.first.IsZero() {
		d.first = info.Timestamp
	}
	p := gopacket.NewPacket(data, layers.LayerTypeEthernet, gopacket.DecodeOptions{Lazy: false, NoCopy: true})
	found := false
	for _, l := range p.Layers() { // several of a train
		if m, ours := l.(*decode.Message); ours {
			found = true
			if err := d.message(n, p, info, m); err != nil {
				return err
			}
		}
	}
	if p.ErrorLayer() != nil && errors.Is(p.ErrorLayer().Error(), decode.ErrFault) { // too short for a header
		return d.message(n, p, info, nil)
	}
	if found {
		return nil
	}
	d.other++
	if !d.all {
		return nil
	}
	return d.write(n, p, info, nil)
}

// message counts and prints a message; m is nil if it is too short for a header.
func (d *dumpVerb) message(n int, p gopacket.Packet, info gopacket.CaptureInfo, m *decode.Message) error {
	d.messages++
	if (m == nil || m.Fault != nil) && !inPart(p, info, m) {
		d.faulty++
	}
	return d.write(n, p, info, m)
}

// inPart says whether a message, or a frame if m is nil, is cut off because the capture has less of
// the frame than there was, as with tcpdump -s: no node would drop it for that.
func inPart(p gopacket.Packet, info gopacket.CaptureInfo, m *decode.Message) bool {
	if info.CaptureLength >= info.Length {
		return false
	}
	if m == nil {
		return p.ErrorLayer() != nil
	}
	return p.Metadata().Truncated && m.Length > len(m.Payload)
}

// write prints one line: a message, or a frame without one.
func (d *dumpVerb) write(n int, p gopacket.Packet, info gopacket.CaptureInfo, m *decode.Message) error {
	r := d.record(n, p, info, m)
	if d.json {
		return cli.WriteJSON(d.out, r)
	}
	_, err := fmt.Fprintf(d.out, "%5d %12.6f %s: %s\n",
		n, info.Timestamp.Sub(d.first).Seconds(), r.addresses(), r.describe(p, m))
	return err
}

// addresses shows the Ethernet header: 02:00:00:00:00:01 > 02:00:00:00:00:02 VID 5 PCP 1.
func (r *dumpRecord) addresses() string {
	if r.Src == "" {
		return "no Ethernet header"
	}
	s := r.Src + " > " + r.Dst
	for _, t := range r.Tags {
		s += " " + transport.Tag(t).String()
	}
	return s
}

// describe shows what is behind the header.
func (r *dumpRecord) describe(p gopacket.Packet, m *decode.Message) string {
	inPart := fmt.Sprintf("captured in part (%d of %d bytes)", r.Captured, r.Bytes)
	if r.Captured > 0 && m != nil {
		cut := *m
		cut.Fault = nil
		return fmt.Sprintf("%v [%s] %q", &cut, inPart, r.Message.Payload)
	}
	switch {
	case r.Captured > 0:
		return inPart
	case m == nil && r.Fault != "":
		return r.Fault
	case m == nil:
		all := p.Layers()
		return fmt.Sprintf("%v, %d bytes", all[len(all)-1].LayerType(), len(p.Data()))
	case len(r.Message.Records) > 0:
		return m.String() + r.Message.describeRecords()
	case len(r.Message.Payload) > 0:
		return fmt.Sprintf("%v %q", m, r.Message.Payload)
	}
	return m.String()
}

// dumpRecord is a frame as JSON.
type dumpRecord struct {
	Frame     int          `json:"frame"`
	Time      time.Time    `json:"time"`
	Interface int          `json:"interface"`
	Src       string       `json:"src"`
	Dst       string       `json:"dst"`
	Tags      []dumpTag    `json:"tags,omitempty"`
	Message   *dumpMessage `json:"message,omitempty"`
	Fault     string       `json:"fault,omitempty"`
	Bytes     int          `json:"bytes"`              // of the whole frame
	Captured  int          `json:"captured,omitempty"` // of these, where they are too few for the message
}

type dumpTag struct {
	VID transport.VID `json:"vid"`
	PCP transport.PCP `json:"pcp"`
	DEI bool          `json:"dei,omitempty"`
}

type dumpMessage struct {
	Kind    string `json:"kind"`
	From    uint16 `json:"from"`
	SrcPort uint8  `json:"src_port"`
	To      uint16 `json:"to"`
	DstPort uint8  `json:"dst_port"`
	Cluster uint32 `json:"cluster"`
	Length  int    `json:"length"`
	Payload []byte `json:"payload"` // the first bytes

	Records []decode.Record `json:"records,omitempty"`
	shown   int             // how many bytes of each record's data
}

func (d *dumpVerb) record(n int, p gopacket.Packet, info gopacket.CaptureInfo, m *decode.Message) *dumpRecord {
	r := &dumpRecord{Frame: n, Time: info.Timestamp, Interface: info.InterfaceIndex, Bytes: info.Length}
	if eth, ok := p.LinkLayer().(*layers.Ethernet); ok {
		r.Src, r.Dst = eth.SrcMAC.String(), eth.DstMAC.String()
	}
	for _, l := range p.Layers() {
		if t, ok := l.(*layers.Dot1Q); ok {
			r.Tags = append(r.Tags, dumpTag{transport.VID(t.VLANIdentifier), transport.PCP(t.Priority), t.DropEligible})
		}
	}
	switch e := p.ErrorLayer(); {
	case inPart(p, info, m):
		r.Captured = info.CaptureLength
	case m != nil && m.Fault != nil:
		r.Fault = m.Fault.Error()
	case m == nil && e != nil:
		r.Fault = e.Error().Error()
	}
	if m == nil {
		return r
	}
	r.Message = &dumpMessage{
		Kind: m.Kind.String(), From: m.From, SrcPort: m.SrcPort, To: m.To, DstPort: m.DstPort,
		Cluster: m.Cluster, Length: m.Length, Payload: m.Payload[:min(len(m.Payload), d.payload)],
		Records: m.Records(), shown: d.payload,
	}
	return r
}
