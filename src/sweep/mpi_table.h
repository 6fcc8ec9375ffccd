/* What libdemarc_mpi.so gives the program: C, because it is loaded by name. */
#pragma once

#include <stddef.h>

struct demarc_mpi_table {
  int (*start)(void); /* 0: done */
  unsigned (*rank)(void);
  unsigned (*size)(void);
  int (*send)(unsigned to, const char* bytes, size_t count); /* copied; 0: done */
  long (*probe)(unsigned* from); /* bytes of the message that has come next; -1: none has */
  void (*read)(char* bytes, size_t count); /* that message */
  void (*end)(void);
};
