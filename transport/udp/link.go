package udp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/rawlane/rawlane/internal/joins"
	"github.com/rawlane/rawlane/internal/tokenbucket"
	"github.com/rawlane/rawlane/transport"
)

// Link is a transport.Link, Joiner, WakeupMasker, Namer, TypeFilter, Public, Roamer and, on Linux,
// Stamper on a UDP port.
type Link struct {
	mac       transport.MAC
	mtu       int
	etherType transport.EtherType
	group     bool // groups have an IP multicast group
	local     netip.AddrPort
	zone      string // of link-local addresses that do not say theirs, as received ones have it
	socket    *socket
	stations  stations
	seeker    seeker
	joined    joins.Set

	txMu sync.Mutex // guards out, and the Tx counters' writing
	out  outgoing
	tx   struct{ frames, bytes, refused, busy atomic.Uint64 }
	rx   struct{ frames, bytes, malformed atomic.Uint64 }

	authenticated atomic.Bool         // who polls authenticates frames
	polls         uint64              // of the polling goroutine
	heard         recent              // likewise; the sender of the last frame
	moved         [maxMoved]moved     // likewise; by Frame.Origin
	origin        uint32              // likewise; of the last one of these
	retold        tokenbucket.Bucket  // likewise; of introductions that are made again
	respread      tokenbucket.Bucket  // likewise; of those to all others
	doubts        [maxDoubts]doubt    // likewise; by Frame.Origin
	raised        uint32              // likewise; how many of them there were
	doubting      tokenbucket.Bucket  // likewise; of doubts that are raised
	requests      []transport.Request // likewise
	overhead      int                 // of authentication, in bytes; set before authenticated

	stamps stampLog // of the last Poll's frames

	sources map[transport.MAC]netip.Addr // from which frames to stations left at the last Roamed; belongs to its caller

	closed   atomic.Bool
	close    sync.Once
	closeErr error
}

var (
	_ transport.Link         = (*Link)(nil)
	_ transport.Joiner       = (*Link)(nil)
	_ transport.WakeupMasker = (*Link)(nil)
	_ transport.Namer        = (*Link)(nil)
	_ transport.TypeFilter   = (*Link)(nil)
	_ transport.Public       = (*Link)(nil)
	_ transport.Roamer       = (*Link)(nil)
)

// Open listens on an IP address, or host name, and port. Port 0 is one that is free; then
// Config.MAC has to be set, as the others cannot compute it. A node whose address may change while
// it runs listens on all, 0.0.0.0 or [::]. Errors: syscall.EADDRINUSE and what else the system
// says; a name that leads nowhere.
func Open(listen string, cfg Config) (*Link, error) {
	l, err := open(listen, cfg)
	if err != nil {
		return nil, fmt.Errorf("udp %s: open: %w", listen, err)
	}
	return l, nil
}

// OpenInterface listens on an interface's first address, and finds the other stations on its
// network by IP multicast, unless there are Seeds: nothing needs to be known of them. It sets
// Config.Interface and Group, and else is Open. An interface that is removed takes the link with
// it: sends err with ENODEV, also when there is another of that name. Errors, besides:
// transport.ErrNoInterface, if there is none with an IP address.
func OpenInterface(name string, cfg Config) (*Link, error) {
	for ifi := range interfaces() {
		if ifi.Name != name || len(ifi.addrs) == 0 {
			continue
		}
		at := ifi.addrs[0]
		if len(cfg.Seeds) == 0 {
			cfg.Interface, cfg.Group = name, groupIPv4
			if at.Is6() {
				cfg.Group = groupIPv6
			}
		}
		if at.IsLinkLocalUnicast() {
			at = at.WithZone(name)
		}
		return Open(netip.AddrPortFrom(at, DefaultPort).String(), cfg)
	}
	return nil, fmt.Errorf("udp %s: open: %w: none that is up and has an IP address", name, transport.ErrNoInterface)
}

func open(listen string, cfg Config) (_ *Link, err error) {
	switch {
	case cfg.ReceiveBuffer < 0:
		return nil, fmt.Errorf("Config.ReceiveBuffer %d: negative", cfg.ReceiveBuffer)
	case cfg.MAC.IsMulticast():
		return nil, fmt.Errorf("Config.MAC %v: a group's address", cfg.MAC)
	case cfg.Group.IsValid() && len(cfg.Seeds) > 0:
		return nil, errors.New("Config.Seeds: frames for all go to Config.Group (set one of the two)")
	}
	resolver := cmp.Or(cfg.Resolver, net.DefaultResolver)
	at, err := resolve(context.Background(), resolver, listen)
	if err != nil {
		return nil, err
	}
	cfg.Group = cfg.Group.Unmap()
	if cfg.Group.IsValid() && (!cfg.Group.IsMulticast() || cfg.Group.Is4() != at.Addr().Is4()) {
		return nil, fmt.Errorf("Config.Group %v: no IP multicast group of %v's family", cfg.Group, at.Addr())
	}
	if at.Port() == 0 && cfg.MAC.IsZero() && len(cfg.Seeds) == 0 {
		return nil, errors.New("port 0: nobody else can compute the link's address (set Config.MAC)")
	}
	l := &Link{etherType: cmp.Or(cfg.EtherType, transport.EtherTypeDefault)}
	l.retold = tokenbucket.New(retellRate, retellBurst)
	l.respread = tokenbucket.New(respreadRate, respreadBurst)
	l.doubting = tokenbucket.New(doubtRate, doubtBurst)
	l.out.tentative = tokenbucket.New(tentativeRate, tentativeBurst)
	buffer := cmp.Or(cfg.ReceiveBuffer, DefaultReceiveBuffer)
	l.socket, err = openSocket(at, cfg.Interface, cfg.Group, buffer)
	if err != nil {
		return nil, openError(at, err)
	}
	defer func() {
		if err != nil {
			l.seeker.end()
			_ = l.socket.close() // the first error is the one to report
		}
	}()
	port, err := l.socket.port()
	if err != nil {
		return nil, err
	}
	l.local = netip.AddrPortFrom(at.Addr(), port)
	l.zone = zoned(at.Addr()).Zone()
	if l.mac = cfg.MAC; l.mac.IsZero() {
		if l.mac, err = l.ownMAC(listen, at, cfg.Stations, resolver); err != nil {
			return nil, err
		}
	}
	if err := l.addStations(cfg.Stations, resolver); err != nil {
		return nil, err
	}
	if l.group = cfg.Group.IsValid(); l.group {
		l.out.group = l.socket.address(netip.AddrPortFrom(cfg.Group, port))
	}
	if err := l.seek(cfg.Seeds, cfg.Resolver); err != nil {
		return nil, err
	}
	return l, l.setMTU(cfg.MTU)
}

// openError adds to why an address cannot be listened on what helps.
func openError(at netip.AddrPort, err error) error {
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return fmt.Errorf("port %d: %w (another program has it: end that one, or give another port)", at.Port(), err)
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("port %d: %w (ports below 1024 take CAP_NET_BIND_SERVICE: run as root, or "+
			"setcap cap_net_bind_service+ep PROGRAM, or give another port)", at.Port(), err)
	case errors.Is(err, syscall.EADDRNOTAVAIL):
		return fmt.Errorf("%w (no interface here has %v: ip addr lists the addresses that there are)",
			err, at.Addr())
	}
	return err
}

// ownMAC computes the link's Ethernet address from where it listens, which was resolved to at. Of
// all addresses of this host it is the one among the stations, or the first that is not loopback's.
func (l *Link) ownMAC(listen string, at netip.AddrPort, stations []Station, r *net.Resolver) (transport.MAC, error) {
	if at.Addr().IsUnspecified() {
		own := ownAddresses(at.Addr())
		isOwn := func(a netip.AddrPort) bool {
			ours := a.Addr().IsLoopback() || slices.Contains(own, a.Addr())
			return ours && a.Port() == l.local.Port() && l.reaches(a)
		}
		for _, s := range stations {
			all, _ := resolveAll(context.Background(), r, s.Addr) // addStation reports what is none
			if slices.ContainsFunc(all, isOwn) {
				return cmp.Or(s.MAC, StationMAC(s.Addr)), nil
			}
		}
		if len(own) == 0 {
			return transport.MAC{}, errors.New("no interface is up that has an IP address of that family " +
				"(set Config.MAC, or listen on an address)")
		}
		return StationMAC(netip.AddrPortFrom(own[0], l.local.Port()).String()), nil
	}
	if at.Port() == 0 {
		return StationMAC(l.local.String()), nil
	}
	return StationMAC(listen), nil
}

// AddStation makes another link known. Errors: a name that leads nowhere; an address of another
// family; a link-local one of no interface (transport.ErrNoInterface, if none has that name); an
// Ethernet address that is known already, or a group's; too many stations; ErrClosed.
func (l *Link) AddStation(s Station) error {
	if l.closed.Load() {
		return transport.ErrClosed
	}
	if err := l.addStations([]Station{s}, l.seeker.resolver); err != nil {
		return fmt.Errorf("%s: %w", l.Name(), err)
	}
	return nil
}

// addStations makes other links known, in one change of the table.
func (l *Link) addStations(all []Station, resolver *net.Resolver) error {
	var others []*station
	for _, s := range all {
		if cmp.Or(s.MAC, StationMAC(s.Addr)) == l.mac {
			continue
		}
		other, err := l.stationOf(s, resolver)
		if err != nil {
			return err
		}
		others = append(others, other)
	}
	refused := l.stations.addAll(others)
	switch {
	case refused == nil:
		return nil
	case l.stations.load().byMAC[refused.mac] == nil:
		return fmt.Errorf("add station %v: there are %d already, as many as may be", refused.at, maxStations)
	}
	return fmt.Errorf("add station %v: %v is known already", refused.at, refused.mac)
}

// stationOf finds out where a station is.
func (l *Link) stationOf(s Station, resolver *net.Resolver) (*station, error) {
	mac := cmp.Or(s.MAC, StationMAC(s.Addr))
	if mac.IsMulticast() {
		return nil, fmt.Errorf("add station %s: %v is a group's address", s.Addr, mac)
	}
	at, err := resolve(context.Background(), resolver, s.Addr)
	if err == nil && at.Port() == 0 {
		err = fmt.Errorf("address %q: nobody listens on port 0", s.Addr)
	}
	if err != nil {
		return nil, fmt.Errorf("add a station: %w", err)
	}
	at = l.inZone(at)
	if err := l.checkWay(at); err != nil {
		return nil, fmt.Errorf("add station %s: %w", at, err)
	}
	return &station{mac: mac, at: at, address: l.socket.address(at), given: true, said: true}, nil
}

// checkWay says why the link cannot send to an address that the program has given: it is of another
// family, or a link-local one of no interface that is known.
func (l *Link) checkWay(at netip.AddrPort) error {
	if !l.reaches(at) {
		return errors.New("no way from here (listen on an address of the same family)")
	}
	a := l.inZone(at).Addr()
	if !a.Is6() || !a.IsLinkLocalUnicast() {
		return nil
	}
	if a.Zone() == "" {
		return errors.New("of no interface (want its name or number behind the address, such as fe80::1%eth0)")
	}
	if _, err := strconv.ParseUint(a.Zone(), 10, 32); err == nil {
		return nil // of an interface that may come
	}
	if _, err := net.InterfaceByName(a.Zone()); err != nil {
		return fmt.Errorf("interface %q: %w", a.Zone(), transport.ErrNoInterface)
	}
	return nil
}

// inZone returns an address as received ones are written. A link-local one that does not say of
// which interface, as in introductions, is of the link's own.
func (l *Link) inZone(at netip.AddrPort) netip.AddrPort {
	a := at.Addr()
	if !a.Is6() || !a.IsLinkLocalUnicast() {
		return at
	}
	if a.Zone() == "" {
		return netip.AddrPortFrom(a.WithZone(l.zone), at.Port())
	}
	return netip.AddrPortFrom(zoned(a), at.Port())
}

// setMTU takes the wanted MTU, or finds the one that the paths to all stations have.
func (l *Link) setMTU(want int) error {
	most := maxFrame - transport.MaxHeaderLen
	if want != 0 {
		if l.mtu = want; want < 0 || want > most {
			return fmt.Errorf("Config.MTU %d (want 1 to %d)", want, most)
		}
		return nil
	}
	path := interfaceMTU(l.local.Addr())
	table := l.stations.load()
	for _, s := range table.known {
		path = min(path, routeMTU(s.at))
	}
	for _, s := range table.seeds {
		path = min(path, routeMTU(s.at))
	}
	l.mtu = LinkMTU(path, l.local.Addr())
	return nil
}

// MAC implements transport.Link.
func (l *Link) MAC() transport.MAC { return l.mac }

// MTU implements transport.Link.
func (l *Link) MTU() int { return l.mtu }

// Addr returns the IP address and port that the link listens on.
func (l *Link) Addr() netip.AddrPort { return l.local }

// Name implements transport.Namer: "udp 10.0.0.1:7401".
func (l *Link) Name() string { return "udp " + l.local.String() }

// PublicAddr implements transport.Public.
func (l *Link) PublicAddr() string {
	if a, public := publicAddr(l.local.Addr(), l.group); public {
		return a.String()
	}
	return ""
}

// EtherType implements transport.TypeFilter.
func (l *Link) EtherType() transport.EtherType { return l.etherType }

// MaskWakeups implements transport.WakeupMasker.
func (l *Link) MaskWakeups(on bool) { l.socket.maskWakeups(on) }

// Join implements transport.Joiner.
func (l *Link) Join(group transport.MAC) error { return l.wrap("join", l.joined.Join(group, nil)) }

// Leave implements transport.Joiner.
func (l *Link) Leave(group transport.MAC) error { return l.wrap("leave", l.joined.Leave(group, nil)) }

// Counters implements transport.Link.
func (l *Link) Counters() transport.Counters {
	return transport.Counters{
		TxFrames: l.tx.frames.Load(), TxBytes: l.tx.bytes.Load(),
		TxRefused: l.tx.refused.Load(), TxBusy: l.tx.busy.Load(),
		TxFragmented: l.socket.fragmented.Load(),
		RxFrames:     l.rx.frames.Load(), RxBytes: l.rx.bytes.Load(), RxMalformed: l.rx.malformed.Load(),
		RxDropped: l.socket.drops(),
	}
}

// Wait implements transport.Link. The goroutine sleeps in the runtime's poller and holds no thread.
func (l *Link) Wait(ctx context.Context) error {
	if l.closed.Load() {
		return transport.ErrClosed
	}
	err := l.socket.wait(ctx)
	l.stations.tick()
	if err != nil && err == ctx.Err() { //nolint:errorlint // the very value
		return err
	}
	return l.wrap("wait", err)
}

// Close implements transport.Link.
func (l *Link) Close() error {
	l.close.Do(func() {
		l.closed.Store(true)
		l.joined.Close()
		l.seeker.end()
		l.txMu.Lock()
		defer l.txMu.Unlock()
		l.closeErr = l.socket.close()
	})
	return l.closeErr
}

// wrap adds the link's name and the act to an error. ErrBusy stays as it is; after Close every
// error is ErrClosed.
func (l *Link) wrap(act string, err error) error {
	switch {
	case err == nil || err == transport.ErrBusy: //nolint:errorlint // the very value, on the data path
		return err
	case l.closed.Load():
		return transport.ErrClosed
	}
	return fmt.Errorf("%s: %s: %w", l.Name(), act, err)
}
