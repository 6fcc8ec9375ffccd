/* A C program that uses libdemarc.so. */
#include <stdio.h>

#include "demarc/demarc.h"

int main(void) {
  printf("demarc %s\n", demarc_version());
  return 0;
}
