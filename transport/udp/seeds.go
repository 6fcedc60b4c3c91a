package udp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// maxSeeds bounds the addresses of seeds: each frame for all is copied to those not heard yet.
const maxSeeds = 64

// Seeds with names are looked up when the link is opened, and again after pauses that double: nodes
// that start together fill a service's records one by one, and records change later.
const (
	lookupPause    = 250 * time.Millisecond
	lookupPauseMax = 30 * time.Second
	lookupTimeout  = 10 * time.Second
	// firstLookup is how long Open waits for the first look, as the MTU depends on what is found.
	firstLookup = time.Second
)

// srvPrefix begins a seed that is a service of the DNS.
const srvPrefix = "srv:"

// seed is a place where a station listens, whose Ethernet address is not known.
type seed struct {
	text string
	at   netip.AddrPort // if the text is an IP address and port
	srv  string         // if it is a service: the name of its SRV records
}

// CheckSeed says what is wrong with the form of a seed, as Config takes it: an address whose port
// is not 0, or srv: and the name of SRV records. No name of a host is looked up.
func CheckSeed(text string) error {
	_, err := parseSeed(text)
	return err
}

func parseSeed(text string) (seed, error) {
	if name, is := strings.CutPrefix(text, srvPrefix); is {
		if len(name) == 0 || strings.ContainsAny(name, ":/ ") {
			return seed{}, fmt.Errorf("seed %q: no name of SRV records (want one such as "+
				"srv:_rawlane._udp.example.org)", text)
		}
		return seed{text: text, srv: name}, nil
	}
	addr, err := withPort(text)
	if err != nil {
		return seed{}, fmt.Errorf("seed %q: %w, or SRV records such as srv:_rawlane._udp.example.org", text, err)
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return seed{}, fmt.Errorf("seed %q: %w", text, err)
	}
	switch number, err := net.LookupPort("udp", port); {
	case err != nil:
		return seed{}, fmt.Errorf("seed %q: port %q is neither a number nor the name of one", text, port)
	case number == 0:
		return seed{}, fmt.Errorf("seed %q: nobody listens on port 0", text)
	}
	at, _ := netip.ParseAddrPort(addr) // else it is a name
	return seed{text: addr, at: at}, nil
}

// lookup returns where a seed's stations are. Some may be found, and others not.
func (s *seed) lookup(ctx context.Context, r *net.Resolver) (found []netip.AddrPort, err error) {
	if s.srv == "" {
		found, err = resolveAll(ctx, r, s.text)
	} else {
		var records []*net.SRV
		_, records, err = r.LookupSRV(ctx, "", "", s.srv)
		errs := []error{err}
		for _, record := range records[:min(len(records), maxSeeds)] {
			host := strings.TrimSuffix(record.Target, ".")
			ips, err := r.LookupNetIP(ctx, "ip", host)
			errs = append(errs, err)
			for _, ip := range ips {
				found = append(found, netip.AddrPortFrom(ip.Unmap(), record.Port))
			}
		}
		err = errors.Join(errs...)
	}
	if err != nil {
		err = fmt.Errorf("seed %s: %w", s.text, err)
	}
	return found, err
}

// seeker looks seeds up.
type seeker struct {
	seeds    []seed
	resolver *net.Resolver
	stop     context.CancelFunc // nil: all seeds are IP addresses
	done     sync.WaitGroup
	err      atomic.Pointer[error]
}

// seek reads the seeds, makes those that are IP addresses known, and begins to look for the others;
// it returns when it has looked once, or after firstLookup.
func (l *Link) seek(texts []string, resolver *net.Resolver) error {
	k := &l.seeker
	k.resolver = cmp.Or(resolver, net.DefaultResolver)
	names := false
	for _, text := range texts {
		s, err := parseSeed(text)
		if err != nil {
			return err
		}
		if s.at.IsValid() {
			if err := l.checkWay(s.at); err != nil {
				return fmt.Errorf("seed %s: %w", s.at, err)
			}
		}
		names = names || !s.at.IsValid()
		k.seeds = append(k.seeds, s)
	}
	l.stations.setSeeds(l.seedAddresses(nil))
	if !names {
		return nil
	}
	ctx, stop := context.WithCancel(context.Background())
	k.stop = stop
	looked := make(chan struct{})
	k.done.Go(func() { l.lookUp(ctx, looked) }) // until Close
	select {
	case <-looked:
	case <-time.After(firstLookup):
	}
	return nil
}

// lookUp looks the seeds up until ctx ends, and closes looked when it has done so once.
func (l *Link) lookUp(ctx context.Context, looked chan struct{}) {
	last := make([][]netip.AddrPort, len(l.seeker.seeds))
	for pause := lookupPause; ; pause = min(2*pause, lookupPauseMax) {
		var errs []error
		for i := range l.seeker.seeds {
			s := &l.seeker.seeds[i]
			if s.at.IsValid() {
				continue
			}
			once, cancel := context.WithTimeout(ctx, lookupTimeout)
			found, err := s.lookup(once, l.seeker.resolver)
			cancel()
			if err == nil && !slices.ContainsFunc(found, l.reaches) {
				err = fmt.Errorf("seed %s: no address that %s reaches (listen on one of the same family)",
					s.text, l.local)
			}
			if len(found) > 0 {
				last[i] = found
			}
			errs = append(errs, err)
		}
		err := errors.Join(errs...)
		l.seeker.err.Store(&err)
		l.stations.setSeeds(l.seedAddresses(last))
		if looked != nil {
			close(looked)
			looked = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// seedAddresses are the seeds that are IP addresses, and those of the others.
func (l *Link) seedAddresses(found [][]netip.AddrPort) (all []seedAddress) {
	own := l.inZone(l.local)
	add := func(at netip.AddrPort) {
		at = l.inZone(at)
		known := slices.ContainsFunc(all, func(s seedAddress) bool { return s.at == at })
		if !known && l.reaches(at) && at != own && len(all) < maxSeeds {
			all = append(all, seedAddress{at, l.socket.address(at)})
		}
	}
	for _, s := range l.seeker.seeds {
		if s.at.IsValid() {
			add(s.at)
		}
	}
	for _, addresses := range found {
		for _, at := range addresses {
			add(at)
		}
	}
	return all
}

// end ends the looking up.
func (k *seeker) end() {
	if k.stop != nil {
		k.stop()
		k.done.Wait()
	}
}

// SeedErr returns why the last attempt to look seeds up has failed, or nil. The link goes on: it
// looks again.
func (l *Link) SeedErr() error {
	if err := l.seeker.err.Load(); err != nil {
		return *err
	}
	return nil
}

// reaches reports whether the link can send to an address at all.
func (l *Link) reaches(at netip.AddrPort) bool { return at.Addr().Is4() == l.local.Addr().Is4() }
