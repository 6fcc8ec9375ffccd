// Kernels that ask what a card does at barriers and collectives that not all lanes reach.
#define BAR asm volatile("bar.sync 0;" ::: "memory")
#define BARU asm volatile("barrier.sync 0;" ::: "memory")
extern "C" {
__global__ void exit_third(int* out) {
  int t = threadIdx.x;
  if (t % 3 == 0) return;
  __syncthreads();
  out[t] = 1;
}
__global__ void exit_third_u(int* out) {
  int t = threadIdx.x;
  if (t % 3 == 0) return;
  BARU;
  out[t] = 1;
}
__global__ void exit_values(int* out, int n) {
  __shared__ int s[128];
  int t = threadIdx.x;
  s[t] = t;
  if (t >= n) return;
  __syncthreads();
  int v = s[(t + 32) % 128];
  __syncthreads();
  s[t] = v + 1;
  __syncthreads();
  out[t] = s[(t + 1) % n];
}
__global__ void trips(int* out) {
  int t = threadIdx.x;
  int i = 0;
  for (; i < t % 5; ++i) BAR;
  out[t] = i;
}
__global__ void trips_u(int* out) {
  int t = threadIdx.x;
  int i = 0;
  for (; i < t % 5; ++i) BARU;
  out[t] = i;
}
__global__ void trips_warp(int* out) {
  int t = threadIdx.x;
  int i = 0;
  for (; i < 1 + t / 32; ++i) __syncthreads();
  out[t] = i;
}
__global__ void two_sites(int* out) {
  int t = threadIdx.x;
  if (t & 1) {
    BAR;
    out[t] = 1;
  } else {
    BAR;
    out[t] = 2;
  }
}
__global__ void two_sites_u(int* out) {
  int t = threadIdx.x;
  if (t & 1) {
    BARU;
    out[t] = 1;
  } else {
    BARU;
    out[t] = 2;
  }
}
__global__ void two_sites_warp(int* out) {
  int t = threadIdx.x;
  if (t < 32) {
    BAR;
    out[t] = 1;
  } else {
    BAR;
    out[t] = 2;
  }
}
__global__ void half_goes(int* out) {
  int t = threadIdx.x;
  if ((t & 31) < 16) {
    BAR;
    out[t] = 1;
  } else
    out[t] = 2;
}
__global__ void half_goes_u(int* out) {
  int t = threadIdx.x;
  if ((t & 31) < 16) {
    BARU;
    out[t] = 1;
  } else
    out[t] = 2;
}
// Values: do waiting lanes see what late lanes wrote before their own second barrier?
__global__ void half_late(int* out) {
  volatile __shared__ int s;
  int t = threadIdx.x;
  if (t == 0) s = 0;
  __syncthreads();
  if ((t & 31) < 16) {
    BARU;
    out[t] = s;
  } else {
    __nanosleep(2000000);
    s = 7;
    __threadfence_block();
    BARU;
    out[t] = 100;
  }
}
__global__ void half_late_a(int* out) {
  volatile __shared__ int s;
  int t = threadIdx.x;
  if (t == 0) s = 0;
  __syncthreads();
  if ((t & 31) < 16) {
    BAR;
    out[t] = s;
  } else {
    __nanosleep(2000000);
    s = 7;
    __threadfence_block();
    BAR;
    out[t] = 100;
  }
}
__global__ void named_count(int* out) {
  int t = threadIdx.x;
  if (t < 64) {
    if (t % 32 >= 16) return;
    asm volatile("barrier.sync 1, 64;" ::: "memory");
  }
  out[t] = 1;
}
__global__ void named_count_a(int* out) {
  int t = threadIdx.x;
  if (t < 64) {
    if (t % 32 >= 16) return;
    asm volatile("bar.sync 1, 64;" ::: "memory");
  }
  out[t] = 1;
}
__global__ void named_half(int* out) {
  int t = threadIdx.x;
  if (t < 64) {
    if (t % 32 < 16) asm volatile("barrier.sync 1, 32;" ::: "memory");
  }
  out[t] = 1;
}
__global__ void named_exit_warp(int* out) {
  int t = threadIdx.x;
  if (t < 32) return;
  asm volatile("bar.sync 1, 96;" ::: "memory");
  out[t] = 1;
}
__global__ void red_exit(int* out) {
  int t = threadIdx.x;
  if (t % 3 == 0) return;
  out[t] = __syncthreads_count(1);
}
__global__ void red_sites(int* out) {
  int t = threadIdx.x;
  int r;
  if (t < 32)
    r = __syncthreads_count(1);
  else
    r = __syncthreads_count(t & 1);
  out[t] = r;
}
__global__ void shfl_exited(int* out) {
  int t = threadIdx.x;
  int v = t + 100;
  if (t >= 16) return;
  out[t] = __shfl_xor_sync(~0u, v, 16);
}
__global__ void ballot_exited(int* out) {
  int t = threadIdx.x;
  if (t >= 20) return;
  out[t] = __ballot_sync(~0u, 1);
}
__global__ void all_exited(int* out) {
  int t = threadIdx.x;
  if (t >= 20) return;
  out[t] = __all_sync(~0u, t < 20) * 10 + __any_sync(~0u, t == 3);
}
__global__ void redux_exited(int* out) {
  int t = threadIdx.x;
  if (t >= 20) return;
  out[t] = __reduce_add_sync(~0u, 1);
}
__global__ void match_exited(int* out) {
  int t = threadIdx.x;
  if (t >= 20) return;
  out[t] = __match_any_sync(~0u, 5);
}
__global__ void mixed_kinds(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __shfl_xor_sync(~0u, t, 16);
  else
    out[t] = __ballot_sync(~0u, 1);
}
__global__ void mixed_modes(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __shfl_xor_sync(~0u, t, 16);
  else
    out[t] = __shfl_up_sync(~0u, t, 1);
}
__global__ void mixed_syncwarp(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __shfl_xor_sync(~0u, t, 16);
  else {
    __syncwarp();
    out[t] = 9;
  }
}
__global__ void mixed_votes(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __ballot_sync(~0u, 1);
  else
    out[t] = __all_sync(~0u, t > 16);
}
__global__ void sites_redux(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __reduce_add_sync(~0u, 1);
  else
    out[t] = __reduce_add_sync(~0u, 2);
}
__global__ void sites_redux_kinds(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __reduce_add_sync(~0u, t);
  else
    out[t] = __reduce_max_sync(~0u, t);
}
__global__ void sites_match(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __match_any_sync(~0u, t & 1);
  else
    out[t] = __match_any_sync(~0u, t & 1);
}
__global__ void sites_ballot(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __ballot_sync(~0u, t & 1);
  else
    out[t] = __ballot_sync(~0u, t & 2);
}
__global__ void masks_differ(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __shfl_xor_sync(~0u, t, 16);
  else
    out[t] = __shfl_xor_sync(0xffff0000u, t, 1);
}
__global__ void not_member(int* out) {
  int t = threadIdx.x;
  out[t] = __shfl_xor_sync(0xffffu, t, 1);
}
__global__ void not_member_half(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __shfl_xor_sync(0xffff0000u, t, 1);
  else
    out[t] = __shfl_xor_sync(0xffff0000u, t, 1);
}
__global__ void outside_mask(int* out) {
  int t = threadIdx.x;
  if (t < 16)
    out[t] = __shfl_xor_sync(0xffffu, t + 1, 16);
  else
    out[t] = t;
}
__global__ void loop_ballot(int* out, int n) {
  int t = threadIdx.x;
  int s = 0;
  for (int i = 0; i < t % n; ++i) s += __popc(__ballot_sync(~0u, 1));
  out[t] = s;
}
__global__ void loop_ballot_tail(int* out, int n) {
  int t = threadIdx.x;
  int s = 0;
  for (int i = 0; i < t % n; ++i) s += __popc(__ballot_sync(~0u, 1));
  __syncwarp();
  out[t] = s;
}
__global__ void break_ballot(int* out) {
  int t = threadIdx.x;
  int s = 0;
  for (int i = 0; i < 8; ++i) {
    if (i == t % 9) break;
    s += __popc(__ballot_sync(~0u, 1));
  }
  out[t] = s;
}
__global__ void lock_lanes(int* out, int* lock) {
  bool done = false;
  while (!done) {
    if (atomicCAS(lock, 0, 1) == 0) {
      __threadfence();
      out[0] += 1;
      __threadfence();
      atomicExch(lock, 0);
      done = true;
    }
  }
}
__global__ void lock_inner(int* out, int* lock) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  ((volatile int*)out)[0] += 1;
  __threadfence();
  atomicExch(lock, 0);
}
__global__ void lane_waits(int* out) {
  volatile __shared__ int f;
  int t = threadIdx.x;
  if (t == 0) f = 0;
  __syncwarp();
  if (t == 0) {
    while (f == 0) {
    }
    out[0] = 5;
  } else if (t == 1) {
    f = 1;
    out[1] = 6;
  }
}
__global__ void lane_waits_u(int* out) {
  volatile __shared__ int f;
  int t = threadIdx.x;
  if (t == 0) f = 0;
  __syncwarp();
  if (t == 1) {
    while (f == 0) {
    }
    out[1] = 5;
  } else if (t == 0) {
    f = 1;
    out[0] = 6;
  }
}
__global__ void spin_then_bar(int* out) {
  volatile __shared__ int f;
  int t = threadIdx.x;
  if (t == 0) f = 0;
  __syncthreads();
  if (t == 40) {
    while (f == 0) {
    }
  }
  if (t == 41) f = 1;
  __syncthreads();
  out[t] = f;
}
__global__ void activemask_sides(int* out) {
  int t = threadIdx.x;
  if (t < 10)
    out[t] = __activemask();
  else
    out[t] = __activemask();
}
__global__ void reconverge(int* out) {
  int t = threadIdx.x;
  if (t < 10) out[t] = 1;
  out[t + 32] = __activemask();
}
__global__ void ret_guard(int* out, int n) {
  int t = threadIdx.x;
  if (t < n) {
    if (out[t] > 1000) return;
    out[t] = 3;
  }
  __syncthreads();
  out[t] += __popc(__ballot_sync(~0u, 1));
}
__global__ void trap_lane(int* out) {
  int t = threadIdx.x;
  out[t] = 1;
  if (t == 77) asm volatile("trap;");
  __syncthreads();
  out[t] = 2;
}
__global__ void exit_asm(int* out) {
  int t = threadIdx.x;
  if (t >= 70) asm volatile("exit;");
  BAR;
  out[t] = __popc(__ballot_sync(~0u, 1));
}
__global__ void warps_less(int* out) {
  int t = threadIdx.x;
  out[t] = __popc(__ballot_sync(~0u, 1)) * 100 + __popc(__activemask());
}
__global__ void syncwarp_masks(int* out) {
  __shared__ int s[32];
  int t = threadIdx.x;
  s[t] = 0;
  __syncwarp();
  if (t < 16) {
    s[t] = t;
    __syncwarp(0xffff);
    out[t] = s[15 - t];
  } else {
    s[t] = t * 2;
    __syncwarp(0xffff0000);
    out[t] = s[47 - t];
  }
}
__global__ void elect(int* out) {
  int t = threadIdx.x;
  unsigned p;
  if (t >= 5)
    asm volatile("{ .reg .pred p; elect.sync _|p, 0xffffffe0; selp.u32 %0, 1, 0, p; }" : "=r"(p));
  else
    p = 7;
  out[t] = p;
}
__device__ __noinline__ int both(int v) {
  return __shfl_xor_sync(~0u, v, 16);
}
__global__ void call_sides(int* out) {
  int t = threadIdx.x;
  int r;
  if (t < 16)
    r = both(t) + 1000;
  else
    r = both(t) + 2000;
  out[t] = r;
}
__device__ __noinline__ int depth(int d, int v) {
  if (d == 0) return __shfl_xor_sync(~0u, v, 1);
  return depth(d - 1, v) + 1;
}
__global__ void call_depths(int* out) {
  int t = threadIdx.x;
  out[t] = depth(t % 4, t);
}
__global__ void brx(int* out) {
  int t = threadIdx.x;
  int r;
  switch (t % 5) {
    case 0:
      r = __shfl_xor_sync(~0u, t, 1);
      break;
    case 1:
      r = __shfl_xor_sync(~0u, t * 2, 1) + 7;
      break;
    case 2:
      r = __shfl_xor_sync(~0u, t * 3, 1) * 3;
      break;
    case 3:
      r = __shfl_xor_sync(~0u, t * 5, 1) ^ 64;
      break;
    default:
      r = __shfl_xor_sync(~0u, t * 7, 1) - 5;
  }
  out[t] = r;
}
}
