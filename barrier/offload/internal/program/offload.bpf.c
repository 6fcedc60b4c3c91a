//go:build ignore

// The unit of a barrier's Center: it counts the members' arrivals, and answers the last one with the
// release. It runs for each frame that comes to the interface. What is no arrival that it can count
// goes on to the Center's process as it is.
//
// Package slot has the same in Go, with the layouts, and the reasons.

#include <stddef.h>
#include <linux/bpf.h>
#include <linux/in.h>
#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

#define RANKS_PER_WORD 32
#define WORDS 32
#define GENERATION_SHIFT 32
#define WAITS (1U << 31)
#define RETRIES 16
#define UNICAST 0x11 // version and kind of mcd's header
#define IPV4 bpf_htons(0x0800)

struct message {
	__u8 kind, tagged, ports[2]; // the checksum covers this
	__be16 from, to;
	__be32 cluster;
	__be16 length, tci;
	__be32 checksum; // up to here,
	__u8 notify, number, label, flags; // and this to the end
	__u8 identity[12];
	__be32 generation, algorithm, incarnation;
} __attribute__((packed));

#define HEADER_LEN 16
#define NOTIFY_LEN (sizeof(struct message) - offsetof(struct message, notify))

struct frame {
	__u8 dst[6], src[6];
	__be16 type;
	struct message message;
} __attribute__((packed));

// The headers of a train. A frame that goes alone has them where it would overtake trains.
struct train {
	__u8 version, service;
	__be16 total, id, fragment;
	__u8 hops, protocol;
	__be16 sum;
	__be32 src, dst;
	__be16 kind, type, length, checksum;
	struct message message;
} __attribute__((packed));

#define UDP_LEN (8 + sizeof(struct message))
#define UDP_SUM (int)(offsetof(struct frame, message) + offsetof(struct train, checksum))
#define TRAIN_SRC bpf_htonl(239U << 24 | 82 << 16 | 76 << 8 | 1)
#define TRAIN_DST bpf_htonl(239U << 24 | 82 << 16 | 76 << 8 | 2)
#define TRAIN_OF_FRAMES bpf_htons(1)

struct key {
	__u8 identity[12];
	__be16 node;
	__u8 number, zero;
};

struct member {
	__u32 slot, rank;
	__be32 incarnation;
	__u8 mac[6], zero[2];
};

struct slot {
	__u64 count;
	__u64 arrived[WORDS];
	__u32 needed, used, label;
	struct frame release; // generation and checksum apart
	__u8 room[64 - sizeof(struct frame)];
	__u8 zero[4];
};

volatile const __u32 crc32c[256]; // the table of one byte

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct slot);
} slots SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 1);
	__type(key, struct key);
	__type(value, struct member);
} members SEC(".maps");

static __always_inline int same(const void *a, const void *b, int n)
{
	const __u8 *x = a, *y = b;
	__u8 differs = 0;
#pragma clang loop unroll(full)
	for (int i = 0; i < n; i++)
		differs |= x[i] ^ y[i];
	return !differs;
}

static __always_inline __u32 update(__u32 crc, const __u8 *b, int n)
{
#pragma clang loop unroll(full)
	for (int i = 0; i < n; i++) {
		__u32 index = crc ^ b[i];

		asm volatile("" : "+r"(index)); // Linux 6.1 wants to see the mask last
		crc = crc32c[index & 0xff] ^ crc >> 8;
	}
	return crc;
}

static __always_inline __be32 checksum(const struct message *m)
{
	__u32 crc = update(~0U, &m->kind, HEADER_LEN);
	return bpf_htonl(~update(crc, &m->notify, NOTIFY_LEN));
}

// is_train reports whether a packet of IPv4 is a frame with the length of an arrival behind a
// train's headers.
static __always_inline int is_train(const struct train *t)
{
	return t->version == 0x45 && t->total == bpf_htons(sizeof(*t)) && !(t->fragment & bpf_htons(0x3fff)) &&
	       t->protocol == IPPROTO_UDP && t->src == TRAIN_SRC && t->dst == TRAIN_DST &&
	       t->kind == TRAIN_OF_FRAMES && t->length == bpf_htons(UDP_LEN);
}

// is_arrival reports whether a is a member's arrival at the slot, of whichever generation, in a frame
// of that type.
static __always_inline int is_arrival(const struct frame *f, __be16 type, const struct message *a,
				      const struct member *m, const struct slot *s)
{
	const struct message *r = &s->release.message;

	return same(f->dst, s->release.src, 6) && same(f->src, m->mac, 6) && type == s->release.type &&
	       !a->tagged && same(a->ports, r->ports, 2) && a->to == r->from && a->cluster == r->cluster &&
	       a->length == r->length && !a->tci && a->notify == r->notify && a->number == r->number &&
	       a->label == s->label && !a->flags && same(a->identity, r->identity, 12) && a->algorithm == r->algorithm &&
	       a->incarnation == m->incarnation && a->checksum == checksum(a);
}

// begin begins the generation after a full one. The words come before the count, which says so.
static __always_inline void begin(struct slot *s, __u32 generation)
{
	__u64 word = (__u64)generation << GENERATION_SHIFT;

	for (int i = 0; i < WORDS; i++) {
		if (i >= s->used)
			break;
		__sync_lock_test_and_set(&s->arrived[i], word);
	}
	__sync_lock_test_and_set(&s->count, word);
}

// transmit makes the frame the release. Behind a train's headers the kernel may have left the sum of
// UDP to whoever sends the frame: in generic code it still writes the sum, two bytes at the place
// that this had in memory. So the release begins before that place by its own length, and has the
// two bytes for padding.
static __always_inline int transmit(struct xdp_md *ctx, const struct slot *s, __be32 generation, int headed)
{
	int padding = 0;

	if (headed && !bpf_xdp_adjust_head(ctx, UDP_SUM - (int)sizeof(struct frame)))
		padding = 2;
	int more = (int)(ctx->data_end - ctx->data) - (int)sizeof(struct frame) - padding;

	if (more > 0 && bpf_xdp_adjust_tail(ctx, -more))
		return XDP_DROP; // others ask for the release
	struct frame *f = (struct frame *)(long)ctx->data;
	if ((void *)(f + 1) > (void *)(long)ctx->data_end)
		return XDP_DROP;
	__builtin_memcpy(f, &s->release, sizeof(*f));
	f->message.generation = generation;
	f->message.checksum = checksum(&f->message);
	return XDP_TX;
}

SEC("xdp")
int rawlane_barrier(struct xdp_md *ctx)
{
	const void *end = (void *)(long)ctx->data_end;
	const struct frame *f = (void *)(long)ctx->data;
	const struct message *a = &f->message;

	if ((void *)(f + 1) > end)
		return XDP_PASS;
	__be16 type = f->type;
	int headed = type == IPV4;
	if (headed) {
		const struct train *t = (void *)&f->message;

		if ((void *)(t + 1) > end || !is_train(t))
			return XDP_PASS;
		type = t->type;
		a = &t->message;
	}
	if (a->kind != UNICAST)
		return XDP_PASS;
	struct key key = {.node = a->from, .number = a->number};
	__builtin_memcpy(key.identity, a->identity, sizeof(key.identity));
	struct member *m = bpf_map_lookup_elem(&members, &key);
	if (!m)
		return XDP_PASS;
	__u32 index = m->slot;
	struct slot *s = bpf_map_lookup_elem(&slots, &index);
	if (!s || !is_arrival(f, type, a, m, s))
		return XDP_PASS;

	__be32 wire = a->generation;
	__u32 generation = bpf_ntohl(wire), rank = m->rank;
	if (!generation || rank >= WORDS * RANKS_PER_WORD)
		return XDP_PASS;
	__u64 *arrived = &s->arrived[rank / RANKS_PER_WORD];
	__u64 bit = 1ULL << rank % RANKS_PER_WORD;
	__u64 old = *(volatile __u64 *)arrived;
	int set = 0;
	for (int i = 0; i < RETRIES && !set; i++) {
		if (old >> GENERATION_SHIFT != generation)
			return XDP_PASS;
		if (old & bit)
			return XDP_DROP;
		__u64 was = __sync_val_compare_and_swap(arrived, old, old | bit);
		set = was == old;
		old = was;
	}
	if (!set)
		return XDP_PASS;
	__u32 count = (__u32)__sync_fetch_and_add(&s->count, 1) + 1;
	if ((count & ~WAITS) != s->needed)
		return XDP_DROP;
	if (count & WAITS)
		return XDP_PASS; // wakes the Center
	begin(s, generation + 1);
	return transmit(ctx, s, wire, headed);
}

char _license[] SEC("license") = "Dual BSD/GPL";
