/* The ranks of an MPI job behind a table of functions (src/sweep/mpi_table.h): a library of its own,
   loaded by the program when mpirun has started it. */
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

#include "mpi_table.h"

enum { tag = 1 };

/* A message that MPI may not be done with. */
struct pending {
  MPI_Request request;
  char* bytes;
  struct pending* next;
};
static struct pending* sent;
static MPI_Status found;

static void reap(int wait) {
  struct pending** at = &sent;
  while (*at != NULL) {
    struct pending* const one = *at;
    int done = 0;
    if (wait) {
      MPI_Wait(&one->request, MPI_STATUS_IGNORE);
      done = 1;
    } else {
      MPI_Test(&one->request, &done, MPI_STATUS_IGNORE);
    }
    if (!done) {
      at = &one->next;
      continue;
    }
    *at = one->next;
    free(one->bytes);
    free(one);
  }
}

static int start(void) {
  int provided = 0;
  return MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) == MPI_SUCCESS ? 0 : 1;
}

static unsigned rank_of(void) {
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  return (unsigned)rank;
}

static unsigned size_of(void) {
  int size = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  return (unsigned)size;
}

static int send_to(unsigned to, const char* bytes, size_t count) {
  struct pending* const one = malloc(sizeof *one);
  char* const copy = malloc(count + 1);
  if (one == NULL || copy == NULL) {
    free(one);
    free(copy);
    return 1;
  }
  memcpy(copy, bytes, count);
  reap(0);
  one->bytes = copy;
  one->next = sent;
  sent = one;
  return MPI_Isend(copy, (int)count, MPI_CHAR, (int)to, tag, MPI_COMM_WORLD, &one->request) ==
                 MPI_SUCCESS
             ? 0
             : 1;
}

static long probe(unsigned* from) {
  int there = 0;
  int count = 0;
  reap(0);
  MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &there, &found);
  if (!there) return -1;
  MPI_Get_count(&found, MPI_CHAR, &count);
  *from = (unsigned)found.MPI_SOURCE;
  return count;
}

static void read_found(char* bytes, size_t count) {
  MPI_Recv(bytes, (int)count, MPI_CHAR, found.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void end(void) {
  reap(1);
  MPI_Finalize();
}

__attribute__((visibility("default"))) const struct demarc_mpi_table demarc_mpi_table_1 = {
    start, rank_of, size_of, send_to, probe, read_found, end};
