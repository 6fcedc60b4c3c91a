//go:build ignore

// The program of a link over AF_XDP. It runs for each frame that comes to the interface. Those of
// the link go to its socket of the receive queue; all others go on to the kernel as they are.
//
// What it looks for is set before it is loaded, so the verifier sees constants.

#include <linux/bpf.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define ETHER_LEN 14
#define TAGGED_LEN 18
#define HEADER_LEN 12 // of a message, as far as its cluster
#define TPID_8021Q 0x8100
#define TPID_8021AD 0x88a8

volatile const __u16 ether_type;   // of the frames, behind their tag
volatile const __u8 mac[6];        // of the interface
volatile const __u8 promiscuous;   // frames for other stations, too

// Messages of which clusters, and to which ports: one of the scopes. With none, all are taken.
#define MAX_SCOPES 32
struct scope {
	__u32 first, last; // clusters
	__u8 ports[32];    // a bit each
};
volatile const __u32 scope_count;
volatile const struct scope scopes[MAX_SCOPES];

// By receive queue. The loader sets the number of entries.
struct {
	__uint(type, BPF_MAP_TYPE_XSKMAP);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sockets SEC(".maps");

static __always_inline __u16 type_at(const __u8 *at) { return bpf_ntohs(*(const __be16 *)at); }

#define FIRST_PORTLESS 4 // the first kind of message that is for no port: probes and replies

// Fields of a message's header: docs/wire-format.md.
static __always_inline int in_scope(const __u8 *message)
{
	__u8 kind = message[0] & 0x0f;
	__u8 port = message[2];
	__u32 cluster = bpf_ntohl(*(const __be32 *)(message + 8));

#pragma unroll
	for (int i = 0; i < MAX_SCOPES; i++) {
		if (i >= scope_count)
			return 0;
		if (cluster >= scopes[i].first && cluster <= scopes[i].last &&
		    (kind >= FIRST_PORTLESS || scopes[i].ports[port >> 3] & 1 << (port & 7)))
			return 1;
	}
	return 0;
}

SEC("xdp")
int rawlane_link(struct xdp_md *ctx)
{
	const __u8 *frame = (const __u8 *)(long)ctx->data;
	const __u8 *end = (const __u8 *)(long)ctx->data_end;

	if (frame + ETHER_LEN > end)
		return XDP_PASS;
	const __u8 *message = frame + ETHER_LEN;
	__u16 type = type_at(frame + 12);
	if (type == TPID_8021Q || type == TPID_8021AD) {
		if (frame + TAGGED_LEN > end)
			return XDP_PASS;
		message = frame + TAGGED_LEN;
		type = type_at(frame + 16);
	}
	if (type != ether_type)
		return XDP_PASS;
	if (!promiscuous && !(frame[0] & 1)) {
#pragma unroll
		for (int i = 0; i < 6; i++)
			if (frame[i] != mac[i])
				return XDP_PASS;
	}
	if (scope_count > 0 && (message + HEADER_LEN > end || !in_scope(message)))
		return XDP_PASS;
	return bpf_redirect_map(&sockets, ctx->rx_queue_index, XDP_PASS);
}

char _license[] SEC("license") = "Dual BSD/GPL";
