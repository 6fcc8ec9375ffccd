/* The C interface of Demarc: masks on a real GPU. Stable: functions are added, never changed.
 *
 * Every function that returns int returns 0 when it worked, else 1 (wrong input), 2 (the machine or
 * driver lacks it) or 3 (a check did not hold); demarc_error() then says why. In masks a set bit
 * ENABLES a TPC; bit i of word i / 64 is TPC i in logical order. Link with libdemarc.so. */
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
/* The sentence of the calling thread's last error; "" when there was none. */
const char* demarc_error(void);

/* Opens card `device`: finds or remembers its topology and proves that masks work. */
int demarc_open(uint32_t device, demarc_card** card);
/* Masks set through the card are taken back. */
void demarc_close(demarc_card* card);

uint32_t demarc_tpc_count(const demarc_card* card);
uint32_t demarc_sm_count(const demarc_card* card);
uint32_t demarc_gpc_count(const demarc_card* card);
/* GPC of a TPC, and its L2 side (-1: not known). */
int demarc_gpc_of_tpc(const demarc_card* card, uint32_t tpc, uint32_t* gpc);
int demarc_side_of_tpc(const demarc_card* card, uint32_t tpc, int32_t* side);

/* Launches of this process whose stream has no mask. NULL takes the mask back. */
int demarc_set_process_mask(demarc_card* card, const demarc_tpcs* tpcs);
/* Later launches into `stream` (a CUstream or cudaStream_t, not a default stream). */
int demarc_set_stream_mask(demarc_card* card, void* stream, const demarc_tpcs* tpcs);
/* The next launch of the calling thread. */
int demarc_set_next_mask(demarc_card* card, const demarc_tpcs* tpcs);
/* 3 when a cluster of that many blocks, `blocks_per_sm` an SM, could never start on `tpcs`. */
int demarc_check_cluster(const demarc_card* card, const demarc_tpcs* tpcs, uint32_t cluster_blocks,
                         uint32_t blocks_per_sm);
/* Runs a probe kernel in `stream` and counts its blocks outside `tpcs`. */
int demarc_count_outside(demarc_card* card, void* stream, const demarc_tpcs* tpcs,
                         uint64_t* blocks_outside);

#ifdef __cplusplus
}
#endif

#endif
