package builtin

import (
	"context"
	"fmt"
	"net/netip"
	"syscall"
)

// An addressError says that a connection was not made because of where it led.
type addressError struct {
	addr netip.Addr
	kind string
}

func (e *addressError) Error() string {
	return fmt.Sprintf("it leads to %s, %s; downloads reach only the public internet, unless config.json says \"allowPrivateNetwork\": true", e.addr, e.kind)
}

// publicOnly refuses connections to addresses that are not public. As a dialer's
// ControlContext it is asked with the very address that is connected to next, for
// each address of a name and each redirect, so no other answer of the name
// service can come between.
func publicOnly(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if kind := notPublic(to.Addr()); kind != "" {
		return &addressError{to.Addr(), kind}
	}
	return nil
}

// specialAddresses are the blocks of IANA's special-purpose registries that are
// not reachable for everyone, in RFC 6890's words. Those that netip knows are not
// repeated.
var specialAddresses = []struct {
	block netip.Prefix
	kind  string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "an address of this host"},
	{netip.MustParsePrefix("100.64.0.0/10"), "an address shared behind a provider's NAT"},
	{netip.MustParsePrefix("192.0.0.0/24"), "a reserved address"},
	{netip.MustParsePrefix("192.0.2.0/24"), "a documentation address"},
	{netip.MustParsePrefix("198.18.0.0/15"), "a benchmarking address"},
	{netip.MustParsePrefix("198.51.100.0/24"), "a documentation address"},
	{netip.MustParsePrefix("203.0.113.0/24"), "a documentation address"},
	{netip.MustParsePrefix("240.0.0.0/4"), "a reserved address"},
	{netip.MustParsePrefix("::/96"), "a reserved address"}, // once IPv4 in IPv6
	{netip.MustParsePrefix("64:ff9b:1::/48"), "an address of a local NAT64"},
	{netip.MustParsePrefix("100::/64"), "an address that discards"},
	{netip.MustParsePrefix("2001::/23"), "a reserved address"}, // Teredo among them
	{netip.MustParsePrefix("2001:db8::/32"), "a documentation address"},
	{netip.MustParsePrefix("3fff::/20"), "a documentation address"},
	{netip.MustParsePrefix("5f00::/16"), "a reserved address"},
	{netip.MustParsePrefix("fec0::/10"), "a site-local address"},
}

// Blocks whose addresses hold an IPv4 address that they lead to.
var (
	nat64  = netip.MustParsePrefix("64:ff9b::/96") // in the last four bytes
	sixTo4 = netip.MustParsePrefix("2002::/16")    // from the third byte on
)

// notPublic says what kind of address it is, "" if it is a public one.
func notPublic(addr netip.Addr) string {
	addr = addr.Unmap().WithZone("")
	switch {
	case addr.IsLoopback():
		return "a loopback address"
	case addr.IsUnspecified():
		return "an address of this host"
	case addr.IsPrivate():
		return "a private address"
	case addr.IsLinkLocalUnicast():
		return "a link-local address"
	case addr.IsMulticast():
		return "a multicast address"
	}
	for _, s := range specialAddresses {
		if s.block.Contains(addr) {
			return s.kind
		}
	}
	bytes := addr.As16()
	switch {
	case nat64.Contains(addr):
		return notPublic(netip.AddrFrom4([4]byte(bytes[12:])))
	case sixTo4.Contains(addr):
		return notPublic(netip.AddrFrom4([4]byte(bytes[2:6])))
	}
	return ""
}
