package room

import (
	"bytes"
	"encoding/binary"
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Requests of SIOCETHTOOL, and the set of strings that are the features' names (linux/ethtool.h).
const (
	getStrings   = 0x1b // ETHTOOL_GSTRINGS
	getCount     = 0x37 // ETHTOOL_GSSET_INFO
	getFeatures  = 0x3a // ETHTOOL_GFEATURES
	featureNames = 4    // ETH_SS_FEATURES
	nameLen      = 32   // ETH_GSTRING_LEN
)

// Features returns an interface's features, and which are on. Package ethtool has room of 1 MB for
// their names, which take 2 KB: more than all else that a program allocates to open a link, so that
// the collector began in the midst of its first thousand messages.
func (e *Ethtool) Features(ifname string) (map[string]bool, error) {
	order := binary.NativeEndian

	info := make([]byte, 20) // struct ethtool_sset_info
	order.PutUint32(info, getCount)
	order.PutUint64(info[8:], 1<<featureNames)
	if err := ask(e.socket, ifname, info); err != nil {
		return nil, err
	}
	count := int(order.Uint32(info[16:])) // 0 if the driver has none

	const header, blockLen, activeAt = 12, 16, 8
	names := make([]byte, header+count*nameLen) // struct ethtool_gstrings
	order.PutUint32(names, getStrings)
	order.PutUint32(names[4:], featureNames)
	order.PutUint32(names[8:], uint32(count))
	if err := ask(e.socket, ifname, names); err != nil {
		return nil, err
	}
	blocks := (count + 31) / 32
	state := make([]byte, 8+blocks*blockLen) // struct ethtool_gfeatures
	order.PutUint32(state, getFeatures)
	order.PutUint32(state[4:], uint32(blocks))
	if err := ask(e.socket, ifname, state); err != nil {
		return nil, err
	}
	on := make(map[string]bool, count)
	for i := range count {
		name, _, _ := bytes.Cut(names[header+i*nameLen:][:nameLen], []byte{0})
		active := order.Uint32(state[8+i/32*blockLen+activeAt:])
		if len(name) > 0 {
			on[string(name)] = active>>(i%32)&1 != 0
		}
	}
	return on, nil
}

// ask makes a request of SIOCETHTOOL. The answer is where the request was.
func ask(fd int, ifname string, request []byte) error {
	var pinned runtime.Pinner
	defer pinned.Unpin()
	pinned.Pin(&request[0])
	ifreq := struct {
		name [unix.IFNAMSIZ]byte
		data unsafe.Pointer
		_    [16]byte // the kernel copies all of its struct ifreq
	}{data: unsafe.Pointer(&request[0])}
	copy(ifreq.name[:unix.IFNAMSIZ-1], ifname)
	if _, _, e := unix.Syscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCETHTOOL, uintptr(unsafe.Pointer(&ifreq))); e != 0 {
		return e
	}
	return nil
}
