// A library whose only device code is machine code: what `demarc exec --allow-plain` looks for.
asm(".section .nv_fatbin,\"a\"\n"
    ".balign 8\n"
    ".incbin \"" DEMARC_FAT_BINARY
    "\"\n"
    ".previous\n");

extern "C" __attribute__((visibility("default"))) int demarc_machine_code() {
  return 1;
}
