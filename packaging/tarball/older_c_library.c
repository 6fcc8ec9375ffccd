// What programs of the tarball call in place of functions that the C library has only since version 2.35 or 2.36. The
// tarball is built on Debian 12 (2.36) and runs on RHEL 9 (2.34), so DemarcStatic.cmake links this into whatever it has, where
// these functions come before those of the C library.
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/random.h>

uint32_t arc4random(void);
double hypot(double x, double y);

// 2.36. The C++ library's std::random_device calls it.
__attribute__((visibility("hidden"))) uint32_t arc4random(void) {
  uint32_t number = 0;
  if (getentropy(&number, sizeof number) != 0) abort();
  return number;
}

struct search {
  uintptr_t wanted;
  struct dl_find_object* found;
};

static int look_into(struct dl_phdr_info* info, size_t size, void* context) {
  struct search* search = context;
  const void* table = NULL;
  int is_there = 0;
  (void)size;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)* segment = &info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + segment->p_vaddr;
    if (segment->p_type == PT_GNU_EH_FRAME) table = (const void*)begin;
    if (segment->p_type == PT_LOAD && search->wanted - begin < segment->p_memsz) is_there = 1;
  }
  if (!is_there || table == NULL) return 0;
  search->found->dlfo_eh_frame = (void*)(uintptr_t)table;
  return 1;
}

// 2.35. The unwinder of libgcc calls it, and reads where the tables of the code at this address are, nothing else.
__attribute__((visibility("hidden"))) int _dl_find_object(void* address, struct dl_find_object* found) {
  struct search search = {(uintptr_t)address, found};
  return dl_iterate_phdr(look_into, &search) == 1 ? 0 : -1;
}

// 2.35 gave it a new version, which sets no error number.
#if defined(__x86_64__)
double older_hypot(double x, double y);
__asm__(".symver older_hypot, hypot@GLIBC_2.2.5");
__attribute__((visibility("hidden"))) double hypot(double x, double y) {
  return older_hypot(x, y);
}
#endif
