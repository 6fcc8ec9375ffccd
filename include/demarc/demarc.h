/* The C interface of Demarc: masks and coloured memory on a real GPU. Stable: functions are added,
 * never changed.
 *
 * A function that returns int returns 0 if it worked, else 1 (wrong input), 2 (the machine or
 * driver lacks something) or 3 (a check did not hold); demarc_error() then says why. A pointer may
 * be NULL only where its comment says so, and where its count is 0: other calls return 1. In masks
 * a set bit ENABLES a TPC; bit i of word i / 64 is TPC i in logical order. Link with libdemarc.so.
 */
#ifndef DEMARC_DEMARC_H
#define DEMARC_DEMARC_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct demarc_card demarc_card;

typedef struct demarc_tpcs {
  uint64_t enabled[2];
} demarc_tpcs;

/* "0.1.0" */
const char* demarc_version(void);
/* The calling thread's last error as a sentence; "" if there was none. */
const char* demarc_error(void);

/* Opens card `device`: finds its topology, or remembers it, and proves that masks work. */
int demarc_open(uint32_t device, demarc_card** card);
/* The same without masks: for programs that set up their partition by other means, such as green
 * contexts, which the driver refuses once masks are in use. Functions that set masks return 2;
 * demarc_count_outside() works. */
int demarc_open_observer(uint32_t device, demarc_card** card);
/* Takes back the masks that were set through the card. */
void demarc_close(demarc_card* card);

/* If `card` is NULL: 0 and an error. */
uint32_t demarc_tpc_count(const demarc_card* card);
uint32_t demarc_sm_count(const demarc_card* card);
uint32_t demarc_gpc_count(const demarc_card* card);
/* GPC of a TPC, and its L2 side (-1: not known). */
int demarc_gpc_of_tpc(const demarc_card* card, uint32_t tpc, uint32_t* gpc);
int demarc_side_of_tpc(const demarc_card* card, uint32_t tpc, int32_t* side);
/* %smid of a TPC's SMs, ascending: `count` is how many there are, `sms` takes the first `capacity`
 * of them. */
int demarc_sms_of_tpc(const demarc_card* card, uint32_t tpc, uint32_t* sms, uint32_t capacity,
                      uint32_t* count);

/* Launches of this process whose stream has no mask. NULL takes the mask back. */
int demarc_set_process_mask(demarc_card* card, const demarc_tpcs* tpcs);
/* Later launches into `stream` (a CUstream or cudaStream_t, not a default stream). */
int demarc_set_stream_mask(demarc_card* card, void* stream, const demarc_tpcs* tpcs);
/* Memory synchronisation domains: a kernel's end waits for what its domain has outstanding, so
 * parts with different domains do not wait for each other. 1 if the card has one domain for all.
 * Kernels that share data keep one domain; between domains only fences of system scope order
 * accesses. */
uint32_t demarc_sync_domain_count(const demarc_card* card);
/* Later launches into `stream`, also captured ones. 2 if the card has no such domain. */
int demarc_set_stream_sync_domain(demarc_card* card, void* stream, uint32_t domain);
/* The next launch of the calling thread. */
int demarc_set_next_mask(demarc_card* card, const demarc_tpcs* tpcs);
/* 3 if a cluster of that many blocks, `blocks_per_sm` per SM, can never start on `tpcs`. */
int demarc_check_cluster(const demarc_card* card, const demarc_tpcs* tpcs, uint32_t cluster_blocks,
                         uint32_t blocks_per_sm);
/* Runs a probe kernel in `stream` and counts its blocks outside `tpcs`. */
int demarc_count_outside(demarc_card* card, void* stream, const demarc_tpcs* tpcs,
                         uint64_t* blocks_outside);

/* Tells the server of this program's tenant that the program has missed its service-level objective
 * once, such as a request that was answered too late (metric demarc_tenant_slo_misses_total). Takes
 * some nanoseconds, in any thread. 2 if the process has no lease of a tenant. */
int demarc_slo_miss(void);

/* ---- Coloured memory: buffers that lie entirely in some colours of a card's memory. ---- */

typedef struct demarc_pool demarc_pool;
typedef struct demarc_buffer demarc_buffer;

typedef struct demarc_share {
  uint64_t colors;   /* bit c: colour c */
  uint64_t byte_cap; /* the most that may be in use at a time; 0: no cap */
} demarc_share;

typedef struct demarc_usage {
  uint64_t capacity_bytes, used_bytes, wasted_bytes, largest_free_bytes;
} demarc_usage;

/* Where byte i of a buffer lies: insert 0 bits at the pivots of `first` + i, ascending; then set
 * each pivot bit so that the parity under its mask is `wanted`; add `base`. See colored.cuh. */
typedef struct demarc_layout {
  uint64_t base, first;
  uint32_t masks; /* how many of the following are used */
  uint32_t mask[8], pivot[8], wanted[8];
} demarc_layout;

/* The same if colours are remainders, as on an H200: the words of colored_layout<remainders> in
 * colored.cuh, whose address() says what they mean. A kernel may take a
 * colored_span<T, remainders> of them. */
typedef struct demarc_remainder_layout {
  uint64_t base, first, table, pages;
  uint32_t chunk_shift, page_shift, pattern_bits, end;
  uint32_t reciprocal, reciprocal_shift, skipped, unused;
} demarc_remainder_layout;

typedef struct demarc_audit {
  uint64_t chunks;  /* of the buffer */
  uint64_t outside; /* whose colour, found by timing, is not of the buffer's share */
  uint64_t unclear; /* that timing could not decide */
} demarc_audit;

/* Takes `bytes` of device memory, finds the colours of its pages by timing and keeps those that one
 * layout serves: nearly all where colours are remainders, about half where they are parities. Share
 * s of the pool takes shares[s]. `colors` colours (2, 4 ...) of the kind that the card's
 * description says keep its memory apart: parities or remainders. `description`: a file of demarc
 * probe memory -o or the name of a built-in description; NULL: the built-in one of the card's name;
 * 2 if there is none.
 */
int demarc_pool_create_described(demarc_card* card, const char* description, uint32_t colors,
                                 uint64_t bytes, const demarc_share* shares, uint32_t share_count,
                                 demarc_pool** pool);
/* The same with colours that are parities under `masks`, from demarc probe. 3 when a built-in
 * description of the card says that they do not keep its memory apart. */
int demarc_pool_create(demarc_card* card, const uint64_t* masks, uint32_t mask_count,
                       uint64_t bytes, const demarc_share* shares, uint32_t share_count,
                       demarc_pool** pool);
/* Buffers stay valid: they keep the parts of the pool that they need. */
void demarc_pool_destroy(demarc_pool* pool);
int demarc_pool_usage(const demarc_pool* pool, uint32_t share, demarc_usage* usage);

int demarc_buffer_create(demarc_pool* pool, uint32_t share, uint64_t bytes, demarc_buffer** buffer);
void demarc_buffer_destroy(demarc_buffer* buffer);
/* Copies; each call waits until its copy is done. */
int demarc_buffer_upload(demarc_buffer* buffer, const void* source, uint64_t bytes,
                         uint64_t offset);
int demarc_buffer_download(demarc_buffer* buffer, void* target, uint64_t bytes, uint64_t offset);
/* Device address of a byte; `run_bytes`, if given, gets the number of bytes that follow there. */
int demarc_buffer_address(const demarc_buffer* buffer, uint64_t byte, uint64_t* address,
                          uint64_t* run_bytes);
/* One of the two works; the other gives 2, for colours of the other kind. */
int demarc_buffer_layout(const demarc_buffer* buffer, demarc_layout* layout);
int demarc_buffer_remainder_layout(const demarc_buffer* buffer, demarc_remainder_layout* layout);
/* 3 if a chunk lies in a foreign colour or more than one in a hundred stay unclear. Nothing else
 * may run on the card meanwhile. */
int demarc_buffer_audit(demarc_buffer* buffer, demarc_audit* audit);

#ifdef __cplusplus
}
#endif

#endif
